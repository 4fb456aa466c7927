"""The async handles that people hold: Store, Conversation, Turn."""
