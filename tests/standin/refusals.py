"""What a provider refuses, in its own words and in its own shape."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

import sessiontree
from tests.standin.counting import tokens_of
from tests.standin.script import Json

ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
ANTHROPIC_SAYS = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum allowed number of bytes.",
    429: "This request would exceed your organization's rate limit.",
    500: "Internal server error",
    529: "Overloaded",
}
OPENAI_TYPES: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", None),
    413: ("invalid_request_error", "request_too_large"),
    429: ("requests", "rate_limit_exceeded"),
}
OPENAI_SAYS = {
    401: "Incorrect API key provided.",
    413: "Request entity too large",
    429: "Rate limit reached for requests. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
}
ROLES = {
    "anthropic": ("user", "assistant"),
    "openai_chat": ("system", "developer", "user", "assistant", "tool"),
}


@dataclass(slots=True, eq=False)
class Refusal(Exception):
    """An answer that is an error. ``message`` is None for the provider's usual words."""

    status: int
    message: str | None = None
    code: str | None = None
    param: str | None = None
    violations: list[sessiontree.Violation] = field(default_factory=list[sessiontree.Violation])

    def body(self, provider: str, number: int) -> Json:
        if provider == "anthropic":
            kind = ANTHROPIC_TYPES.get(self.status, "api_error")
            said = self.message or ANTHROPIC_SAYS.get(self.status, kind)
            return {
                "type": "error",
                "error": {"type": kind, "message": said},
                "request_id": f"req_{number}",
            }
        kind, code = OPENAI_TYPES.get(self.status, ("server_error", None))
        said = self.message or OPENAI_SAYS.get(self.status, OPENAI_SAYS[500])
        error = {"message": said, "type": kind, "param": self.param, "code": self.code or code}
        return {"error": error}


# --- The request's form ---------------------------------------------------------------------


def refuse_form(body: Any, provider: str, *, has_room: bool) -> Json:
    """The body, when it has what every request must have; ``has_room`` that it asks for an
    answer, and so says how long that may be where the provider wants to know."""
    if not isinstance(body, dict):
        raise Refusal(400, "We could not parse the JSON body of your request.")
    request = cast(Json, body)
    for name in (
        "model",
        "messages",
        *(("max_tokens",) if has_room and provider == "anthropic" else ()),
    ):
        if request.get(name) is None:
            missing = "Field required" if provider == "anthropic" else "you must provide it"
            raise Refusal(400, f"{name}: {missing}", param=name)
    messages: Any = request["messages"]
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "messages: at least one message is required", param="messages")
    for at, message in enumerate(cast("list[Any]", messages)):
        _refuse_role(message, at, provider)
    return request


def _refuse_role(message: Any, at: int, provider: str) -> None:
    if not isinstance(message, dict):
        raise Refusal(400, f"messages.{at}: Input should be an object", param="messages")
    role = cast(Json, message).get("role")
    if role in ROLES[provider]:
        return
    if provider == "anthropic" and role == "system":
        raise Refusal(
            400,
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
            'parameter, not "system" as an input message role.',
        )
    known = ", ".join(repr(name) for name in ROLES[provider])
    raise Refusal(400, f"messages.{at}.role: Input should be {known}", param="messages")


# --- What may follow what ---------------------------------------------------------------------


def refuse_violations(body: Json, provider: str) -> None:
    """The first of the rules that a request breaks, by the package's own table."""
    thinking = cast(Json, body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    found = sessiontree.violations(
        body["messages"],
        provider,
        system=body.get("system"),
        model=body.get("model"),
        thinking=thinking,
        tools=bool(body.get("tools")),
    )
    if found:
        param = f"messages.[{found[0].at}]" if found[0].at >= 0 else "messages"
        raise Refusal(400, in_words(found[0]), param=param, violations=found)


def in_words(violation: sessiontree.Violation) -> str:
    """The provider's text, with the places and ids that its table leaves open."""
    ids = ", ".join(violation.ids)
    text = violation.error.replace("messages.N", f"messages.{violation.at}")
    text = text.replace("messages[N]", f"messages[{violation.at}]")
    text = text.replace("content.M", f"content.{violation.part or 0}")
    text = re.sub(r"\bID\b|…", lambda _: ids, text) if ids else text
    count = re.search(r"\d+", violation.what)
    return text.replace("Found N", f"Found {count[0]}") if count else text


# --- Size --------------------------------------------------------------------------------------


def refuse_bytes(size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise Refusal(413)


def refuse_size(body: Json, provider: str, limit: int | None, scale: float) -> int:
    """The tokens of a request, when they and the room for the answer are within the limit."""
    tokens = tokens_of(body, provider, scale)
    if limit is None:
        return tokens
    room = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    if tokens > limit or tokens + room > limit:
        say = _anthropic_overflow if provider == "anthropic" else _openai_overflow
        code = "context_length_exceeded" if provider == "openai_chat" else None
        raise Refusal(400, say(tokens, room, limit), code=code, param="messages")
    return tokens


def _anthropic_overflow(tokens: int, room: int, limit: int) -> str:
    if tokens > limit:
        return f"prompt is too long: {tokens} tokens > {limit} maximum"
    return (
        f"input length and `max_tokens` exceed context limit: {tokens} + {room} > {limit}, "
        "decrease input length or `max_tokens` and try again"
    )


def _openai_overflow(tokens: int, room: int, limit: int) -> str:
    most = f"This model's maximum context length is {limit} tokens. However, "
    if not room:
        return (
            f"{most}your messages resulted in {tokens} tokens. Please reduce the length of the "
            "messages."
        )
    return (
        f"{most}you requested {tokens + room} tokens ({tokens} in the messages, {room} in the "
        "completion). Please reduce the length of the messages or completion."
    )
