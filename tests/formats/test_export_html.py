"""One page: what it shows, that it walks, and that nothing of a conversation runs in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import Seen, Tag, browser, look, shown_text, tags
from hypothesis import given, settings
from hypothesis import strategies as st
from written import answering, calling, chain, info, message, said, tree_of

from sessiontree.core.message import Message
from sessiontree.core.records import ConversationInfo
from sessiontree.core.tree import Tree
from sessiontree.formats.writing import blocks
from sessiontree.formats.writing.detail import Detail, is_role_shown
from sessiontree.formats.writing.html import Page
from sessiontree.transfer.outline import Outline

OWN_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "script",
        "body",
        "header",
        "nav",
        "main",
        "article",
    ),
    *("div", "input", "select", "option", "button", "table", "thead", "tbody", "tr", "th", "td"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "a", "time", "code", "b", "i", "em", "strong", "s"),
    *("span", "bdi", "details", "summary", "pre", "dl", "dt", "dd", "img", "ul", "ol", "li", "hr"),
    *("br", "blockquote"),
}
OWN_ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "rel", "src"),
    *("alt", "datetime", "type", "placeholder", "value", "title", "role", "hidden", "tabindex"),
    *("aria-label", "aria-expanded", "aria-live", "data-step", "start"),
}


def page_of(
    messages: Sequence[Message],
    head: int | None = None,
    *,
    labels: dict[int, list[str]] | None = None,
    about: ConversationInfo | None = None,
    detail: Detail = "full",
) -> str:
    tree = tree_of(messages, messages[-1].id if head is None else head, labels)
    page = Page(about or info(), places_of(tree, detail), labels or {}, "the whole tree", detail)
    by_id = {each.id: each for each in messages}
    articles = [page.article(by_id[node.id]) for node in tree.nodes]
    rows = [page.row(by_id[node.id]) for node in tree.nodes]
    return "".join([page.begin(), *articles, page.begin_rows(), *rows, page.end()])


def places_of(tree: Tree, detail: Detail = "full") -> Outline:
    places = Outline()
    for node in sorted(tree.nodes, key=lambda node: node.id):
        places.add(node.id, node.parent_id, is_role_shown(node.role, detail))
    places.see_head(tree.head)
    return places


def data_of(page: str) -> dict[str, Any]:
    return json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])


def forked() -> list[Message]:
    """
    1 ask ─ 2 call ─ 3 result ─ 4 answer ─┬ 5 ask ─ 6 answer
                                          ├ 7 ask ─ 8 answer
                                          └ 9 ask ─ 10 answer
    """
    found = chain(
        said("ask"), calling("c1", command="ls"), answering("c1"), said("yes", "assistant")
    )
    for at in (5, 7, 9):
        found.append(message(said(f"ask {at}"), at, 4, depth=4))
        found.append(message(said(f"answer {at + 1}", "assistant"), at + 1, at, depth=5))
    return found


# --- what it shows ----------------------------------------------------------------------------


def test_a_page_says_what_it_shows_and_holds_all_that_was_said():
    page = page_of(forked(), head=8, labels={4: ["before"]})
    text = shown_text(page)
    assert "conversation 7 · of ada · topic T-1 · begun 2023-11-14 22:13 UTC" in text
    assert "shows the whole tree" in text
    for words in ("ask 5", "answer 10", "⚑ before", "Call Bash ls", "Result Bash done", "2/3"):
        assert words in text
    off = {tag.attributes["id"] for tag in tags(page) if "off" in tag.attributes.get("class", "")}
    assert off == {"m5", "m6", "m9", "m10"}


def test_the_outline_has_its_rows_in_display_order_each_after_the_one_it_follows():
    data = data_of(page_of(forked(), head=8))
    rows = data["rows"]
    assert [row[0] for row in rows] == [1, 2, 3, 4, 7, 8, 5, 6, 9, 10]
    assert [row[1] for row in rows] == [-1, 0, 1, 2, 3, 4, 3, 6, 3, 8]
    assert data["head"] == 5
    assert all(above < at for at, (_, above, *_) in enumerate(rows))


def test_a_result_says_of_which_tool_it_is_on_every_branch_that_leaves_an_open_call():
    """
    1 ask ─ 2 call ─┬ 3 result ─ 4 thanks
                    └ 5 result
    """
    first = chain(said("ask"), calling("c1", "Bash"), answering("c1", "one"), said("thanks"))
    other = message(answering("c1", "two"), 5, 2, depth=2)
    text = shown_text(page_of([*first, other], head=4))
    assert "Result Bash one" in text
    assert "Result Bash two" in text


def test_nothing_on_the_page_comes_from_elsewhere():
    page = page_of(chain(said("![x](https://example.org/x.png) [y](https://example.org/)")))
    loading = [
        tag for tag in tags(page) if {"src", "srcset", "action", "data"} & tag.attributes.keys()
    ]
    assert loading == []
    assert not [
        tag for tag in tags(page) if tag.name in ("link", "base", "iframe", "object", "svg")
    ]


def test_the_policy_names_script_and_style_by_their_hashes():
    page = page_of(chain(said("x")))
    policy = next(t.attributes["content"] for t in tags(page) if "http-equiv" in t.attributes)
    for name in ("style", "script"):
        (inside,) = re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_images_that_are_data_are_shown_and_other_media_is_named():
    def image(mime_type: str, data: str) -> dict[str, Any]:
        source = {"type": "base64", "media_type": mime_type, "data": data}
        return {"type": "image", "source": source}

    shown = {"role": "user", "content": [image("image/png", "iVBORw0KGgo=")]}
    svg = {"role": "user", "content": [image("image/svg+xml", "PHN2Zz4=")]}
    broken = {"role": "user", "content": [image("image/png", '"><script>')]}
    sources = [
        t.attributes["src"] for t in tags(page_of(chain(shown, svg, broken))) if t.name == "img"
    ]
    assert sources == ["data:image/png;base64,iVBORw0KGgo="]


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://example.org/a?b=c&d", True),
        ("http://example.org", True),
        ("mailto:ada@example.org", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("&#106;avascript:alert(1)", False),
        ("java&Tab;script:alert(1)", False),
        ("data:text/html,<script>alert(1)</script>", False),
        ("vbscript:x", False),
        ("file:///etc/passwd", False),
        ("blob:https://x/y", False),
        ("//example.org", False),
        ("../secret.html", False),
        ("#m1", False),
    ],
)
def test_links_go_to_the_schemes_of_the_list_only(address: str, is_link: bool):
    html = blocks.markdown(f"[text](<{address}>) and <{address}>")
    links = [tag for tag in tags(html) if tag.name == "a"]
    assert bool(links) is is_link
    for link in links:
        assert link.attributes["rel"] == "noopener noreferrer nofollow"
        assert re.match(r"(?:https?|mailto):", link.attributes["href"])


def test_a_level_shows_less_and_what_is_left_hangs_together():
    page = page_of(forked(), detail="low")
    assert "ask 5" in page
    assert "<b>Bash</b>" in page
    assert "done" not in shown_text(page)
    rows = data_of(page)["rows"]
    assert [row[0] for row in rows] == [1, 2, 4, 9, 10, 5, 6, 7, 8]
    assert [row[1] for row in rows][:4] == [-1, 0, 1, 2]
    only = page_of(forked(), detail="user-only")
    assert [row[3] for row in data_of(only)["rows"]] == ["user"] * 4


def test_an_empty_conversation_is_a_page_too():
    page = Page(info(head=None), places_of(Tree.build([])), {}, "the active path, 0 messages")
    assert data_of(page.begin() + page.begin_rows() + page.end()) == {"head": -1, "rows": []}


def test_a_very_long_text_is_shown_as_it_is():
    html = blocks.markdown("*x* " * blocks.LONGEST)
    assert html.startswith("<pre>")
    assert "<em>" not in html


# --- nothing runs -----------------------------------------------------------------------------

MARK = "pwned"
RUN = f"document.documentElement.id='{MARK}';document.title='{MARK}'"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</pre></details></article></main><script>{RUN}</script>",
    f"<!--><script>{RUN}</script>-->",
    f"]]><script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f'"><img src=x onerror="{RUN}">',
    f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    f'" onfocus="{RUN}" autofocus tabindex=1 x="',
    f'<svg onload="{RUN}"><script>{RUN}</script></svg>',
    f'<svg><animate onbegin="{RUN}" attributeName=x dur=1s>',
    f'<math><mi xlink:href="javascript:{RUN}">x</mi></math>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<iframe src="javascript:parent.{RUN}"></iframe>',
    f'<object data="data:text/html,<script>parent.{RUN}</script>"></object>',
    f'<embed src="javascript:{RUN}">',
    f'<details open ontoggle="{RUN}">',
    f'<video><source onerror="{RUN}"></video>',
    f'<body onload="{RUN}"><form action=javascript:{RUN}><button>x',
    "<style>*{display:none!important} @import 'https://example.org/x.css';</style>",
    "</style></title></textarea></noscript><plaintext>",
    '<meta http-equiv="refresh" content="0;url=https://example.org/">',
    '<base href="https://example.org/"><link rel=stylesheet href=x>',
    f"[click](javascript:{RUN}) <javascript:{RUN}>",
    f"[click](data:text/html;base64,PHNjcmlwdD4=) ![x](javascript:{RUN})",
    f'[x](https://a "onclick={RUN}") [x](https://a"onclick="{RUN})',
    f'```"><script>{RUN}</script>\ncode\n```',
    f'``` x" onclick="{RUN}\ncode\n```',
    f"| a |\n|---|\n| <script>{RUN}</script> |",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"\x00<script>{RUN}</script>\u2028\u2029\ufeff",
    f"\ud800<script>{RUN}</script>",
    f"${{{RUN}}} {{{{{RUN}}}}} <%= {RUN} %>",
    '<a id="data">x</a><form id="outline" name="rows"><input name="querySelectorAll">',
]


def hostile_messages() -> list[Message]:
    """Each payload wherever a word of a conversation may stand."""
    natives: list[dict[str, Any]] = []
    for at, payload in enumerate(HOSTILE):
        call = f"c{at} {payload}"
        natives += [
            said(payload),
            calling(call, payload, payload, **{payload: payload, "nested": {payload: [payload]}}),
            answering(call, payload, is_error=True),
            answering_in_parts(payload),
            {
                "role": "assistant",
                "model": payload,
                "content": [
                    {"type": "thinking", "thinking": payload, "signature": payload},
                    {"type": payload, payload: payload},
                    {"type": "text", "text": payload},
                ],
            },
        ]
    return chain(*natives)


def answering_in_parts(payload: str) -> dict[str, Any]:
    image = {"type": "image", "source": {"type": "url", "url": payload}}
    document = {
        "type": "document",
        "title": payload,
        "source": {"type": "text", "media_type": "text/plain", "data": payload},
    }
    return {"role": "user", "content": [{"type": "text", "text": payload}, image, document]}


def hostile_page() -> str:
    messages = hostile_messages()
    labels = {each.id: [HOSTILE[each.id % len(HOSTILE)]] for each in messages}
    names = "\n".join(HOSTILE)
    about = info(owner=names, topic=names, title=names)
    return page_of(messages, labels=labels, about=about)


def assert_harmless(page: str) -> None:
    """Every tag and attribute is one of ours; the rest is text."""
    for tag in tags(page):
        assert tag.name in OWN_TAGS, tag
        assert not is_strange(tag), tag


def is_strange(tag: Tag) -> bool:
    link = tag.attributes.get("href", "https://")
    ids = tag.attributes.get("id", "m1")
    return (
        not tag.attributes.keys() <= OWN_ATTRIBUTES
        or not re.match(r"(?i)#m\d+$|https?:|mailto:", link)
        or not re.match(r"m\d+$|(search|filter|home|help|keys|status|outline|rows|data)$", ids)
        or (tag.name == "script" and tag.attributes.get("type", "") not in ("", "application/json"))
    )


def test_hostile_words_stay_words_wherever_they_stand():
    page = hostile_page()
    assert_harmless(page)
    names = [tag.name for tag in tags(page)]
    assert (names.count("script"), names.count("style"), names.count("meta")) == (2, 1, 6)
    assert f"<script>{RUN}</script>" in shown_text(page)
    page.encode("utf-8")


WORDS = st.lists(
    st.sampled_from([*"<>\"'&/=! -\n`[]()*|:;#\0abx\ud800", "script", "on"]), max_size=60
)


@settings(max_examples=60)
@given(WORDS.map("".join))
def test_no_text_breaks_out_of_its_place(words: str):
    messages = chain(
        said(words), calling("c", words, words, **{words: words}), answering("c", words)
    )
    about = info(title=words, topic=words, owner=words)
    assert_harmless(page_of(messages, labels={1: [words]}, about=about))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The hostile page as Chromium shows it."""
    browser()
    file = tmp_path_factory.mktemp("hostile") / "page.html"
    file.write_text(hostile_page(), encoding="utf-8")
    return look(file)


def test_nothing_of_a_hostile_conversation_runs_in_a_browser(hostile: Seen):
    assert MARK not in re.findall(r"<html[^>]*>", hostile.dom)[0]
    assert "<title>pwned</title>" not in hostile.dom
    assert 'class="js"' in hostile.dom, "our own script must run, or this shows nothing"
    assert 'class="row' in hostile.dom
    assert not [tag for tag in tags(hostile.dom) if any(n.startswith("on") for n in tag.attributes)]
    assert {tag.name for tag in tags(hostile.dom)} <= OWN_TAGS


def test_the_policy_has_nothing_to_refuse_as_nothing_was_tried(hostile: Seen):
    assert hostile.console == []


POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@pytest.mark.parametrize("has_policy", [True, False])
def test_even_what_would_not_be_escaped_is_not_run(tmp_path: Path, has_policy: bool):
    """The second wall: tags put into the page as they are. Without the policy they run, or
    this would show nothing."""
    page = page_of(chain(said("here")))
    raw = [payload for payload in HOSTILE if not re.search("http-equiv|plaintext|\ud800", payload)]
    page = page.replace("<p>here</p>", "".join(raw))
    file = tmp_path / "page.html"
    file.write_text(page if has_policy else POLICY.sub("", page), encoding="utf-8")
    seen = look(file)
    ran = MARK in re.findall(r"<html[^>]*>", seen.dom)[0] or "<title>pwned</title>" in seen.dom
    assert ran is not has_policy
    assert any("Content Security Policy" in line for line in seen.console) is has_policy


# --- it walks -----------------------------------------------------------------------------------


def drive(tmp_path: Path, page: str, steps: str, fragment: str = "") -> dict[str, Any]:
    """What a script of the test sees after it did its steps in a page that allows it."""
    script = f"""
    const key = (name) => document.body.dispatchEvent(
        new KeyboardEvent("keydown", {{key: name, bubbles: true, cancelable: true}}));
    const told = () => ({{
        shown: [...document.querySelectorAll("article:not(.off)")].map((each) => each.id.slice(1)),
        picked: document.querySelector("article.picked")?.id.slice(1),
        rows: [...document.querySelectorAll(".row")].map((each) => each.id.slice(1)),
        status: document.getElementById("status").textContent,
    }});
    document.addEventListener("DOMContentLoaded", () => {{
        const result = (() => {{ {steps} }})() ?? told();
        const made = document.createElement("script");
        made.type = "application/json";
        made.id = "told";
        made.textContent = JSON.stringify(result);
        document.body.append(made);
    }});
    """
    page = POLICY.sub("", page).replace("</head>", f"<script>{script}</script></head>")
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    seen = look(file, fragment)
    found = re.findall(r'id="told">(.*?)</script>', seen.dom)
    assert found, seen.console
    return json.loads(found[0])


def test_it_opens_with_the_path_of_the_head(tmp_path: Path):
    told = drive(tmp_path, page_of(forked(), head=8), "")
    assert told["shown"] == ["1", "2", "3", "4", "7", "8"]
    assert told["picked"] == "1"
    assert told["rows"] == ["1", "2", "3", "4", "7", "8", "5", "6", "9", "10"]


def test_a_link_to_a_message_shows_its_branch(tmp_path: Path):
    told = drive(tmp_path, page_of(forked(), head=8), "", "#m5")
    assert told["shown"] == ["1", "2", "3", "4", "5", "6"]
    assert told["picked"] == "5"


def test_keys_walk_the_path_and_from_sibling_to_sibling(tmp_path: Path):
    steps = """
    const seen = [];
    const press = (...names) => { for (const name of names) key(name); seen.push(told()); };
    press("j"); press("j", "j", "j", "j"); press("]"); press("]"); press("["); press("[");
    press("K"); press("G"); press("g"); press("H");
    press("ArrowLeft"); press("ArrowLeft"); press("ArrowRight");
    return seen;
    """
    seen: Any = drive(tmp_path, page_of(forked(), head=8), steps)
    picked = [each["picked"] for each in seen]
    assert picked == ["2", "8", "9", "9", "7", "5", "1", "6", "1", "8", "7", "7", "7"]
    assert seen[2]["shown"] == ["1", "2", "3", "4", "9", "10"]
    assert seen[2]["status"] == "sibling 3 of 3"
    assert seen[5]["shown"] == ["1", "2", "3", "4", "5", "6"]
    folded, unfolded = seen[11]["rows"], seen[12]["rows"]
    assert len(folded) == len(unfolded) - 1


def test_buttons_switch_siblings(tmp_path: Path):
    steps = """
    document.querySelector("#m7 [data-step='1']").click();
    """
    told = drive(tmp_path, page_of(forked(), head=8), steps)
    assert told["shown"] == ["1", "2", "3", "4", "9", "10"]
    assert (told["picked"], told["status"]) == ("9", "sibling 3 of 3")


def test_search_finds_what_is_said_on_every_branch(tmp_path: Path):
    steps = """
    const search = document.getElementById("search");
    search.value = "ANSWER";
    search.dispatchEvent(new Event("input"));
    const found = document.getElementById("status").textContent;
    key("n"); key("n");
    return { found, ...told() };
    """
    told = drive(tmp_path, page_of(forked(), head=8), steps)
    assert told["found"] == "3 messages found"
    assert (told["picked"], told["status"]) == ("6", "hit 2 of 3")
    assert "6" in told["shown"]


def test_a_filter_hides_rows_of_the_outline(tmp_path: Path):
    told = drive(tmp_path, page_of(forked(), head=8), 'key("f"); key("f");')
    assert told["rows"] == ["1", "7", "5", "9"]


def test_ten_thousand_messages_have_few_rows_at_a_time(tmp_path: Path):
    page = page_of(chain(*(said(f"message {at}") for at in range(10_000))))
    told = drive(tmp_path, page, 'key("G"); return { rows: told().rows, picked: told().picked };')
    assert told["picked"] == "10000"
    assert len(told["rows"]) < 100
