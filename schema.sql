-- The schema of a sessiontree store, for readers in any language.
-- Generated from sessiontree/store/tables.py by `make schema`; do not edit.
--
-- A conversation is a tree of messages: each message records the one it follows
-- (parent_id), each conversation the one that the next will follow (head_id).
-- The path of a message is the chain of parents up to a root.

PRAGMA application_id = 1398035013;  -- "STRE": this file is a sessiontree store
PRAGMA user_version = 1;  -- the version of this schema

-- A conversation: one tree of messages and one head.
CREATE TABLE conversation (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,  -- given by the database
	owner TEXT DEFAULT '' NOT NULL,  -- whose conversation it is; a scoped store sees one owner's
	topic TEXT,  -- the caller's name for it, unique per owner
	title TEXT,  -- for people
	format TEXT,  -- the format of messages whose content does not tell it
	head_id INTEGER,  -- the message that the next one follows; a boundary, or null
	move_id INTEGER,  -- the move that undo takes back; null when there is none
	forked_from INTEGER,  -- the conversation it was forked from
	forked_at INTEGER,  -- the message there that it was forked at
	meta TEXT,  -- the caller's notes, a JSON object
	created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
	updated_at INTEGER NOT NULL,  -- when the head last moved
	UNIQUE (owner, topic)
);

-- A large message content, once, however many messages hold it.
CREATE TABLE blob (
	id INTEGER NOT NULL,  -- given by the database
	sha256 BLOB NOT NULL,  -- of content; 32 bytes
	content BLOB NOT NULL,  -- the message's JSON text in UTF-8
	PRIMARY KEY (id),
	UNIQUE (sha256)
);

-- A message: never changed, never hidden; it records the message that it follows.
CREATE TABLE message (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,  -- given by the database; a child's is larger
	conversation_id INTEGER NOT NULL,  -- whose it is
	parent_id INTEGER,  -- the message it follows, of the same conversation; null for a root
	role TEXT NOT NULL,  -- system, user, assistant, tool, or mark (never sent)
	format TEXT NOT NULL,  -- names the codec that reads content
	depth INTEGER NOT NULL,  -- how many messages come before it on its path
	open_calls INTEGER NOT NULL,  -- tool calls unanswered on its path; 0 makes it a boundary
	tokens INTEGER NOT NULL,  -- estimated when it was saved
	usage TEXT,  -- what the provider reported, JSON
	model TEXT,  -- the model that wrote it
	preview TEXT NOT NULL,  -- the first line of its text, shortened
	"key" TEXT,  -- the caller's id, unique in the conversation
	meta TEXT,  -- the caller's notes, and ours, a JSON object
	system_id INTEGER,  -- the newest system message on its path, itself included
	ref_id INTEGER,  -- the one other message that a mark or a digest speaks of
	created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
	blob_id INTEGER,  -- where content is, when it is large
	content TEXT,  -- the message as it was given, JSON text to the byte
	FOREIGN KEY(conversation_id) REFERENCES conversation (id) ON DELETE CASCADE,
	FOREIGN KEY(blob_id) REFERENCES blob (id),
	CONSTRAINT no_cycle CHECK (parent_id < id),
	CONSTRAINT depth_from_root CHECK ((depth = 0) = (parent_id IS NULL)),
	CONSTRAINT no_orphan_result CHECK (open_calls >= 0),
	CONSTRAINT known_role CHECK (role IN ('system', 'user', 'assistant', 'tool', 'mark')),
	CONSTRAINT content_once CHECK ((content IS NULL) <> (blob_id IS NULL))
);
CREATE INDEX message_by_blob ON message (blob_id) WHERE blob_id IS NOT NULL;
CREATE UNIQUE INDEX message_by_key ON message (conversation_id, "key") WHERE key IS NOT NULL;
CREATE INDEX message_by_parent ON message (conversation_id, parent_id);
CREATE TRIGGER message_parent AFTER INSERT ON message
WHEN NEW.parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM message
    WHERE id = NEW.parent_id AND conversation_id = NEW.conversation_id AND depth = NEW.depth - 1
)
BEGIN
    SELECT RAISE(ABORT, 'the parent is not one step nearer the root in this conversation');
END;

-- A label on a boundary. It goes when its message goes; it is never moved by itself.
CREATE TABLE checkpoint (
	conversation_id INTEGER NOT NULL,  -- whose it is
	label TEXT NOT NULL,  -- the caller's name for the place
	message_id INTEGER NOT NULL,  -- a boundary of the conversation
	note TEXT,  -- for people
	created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
	PRIMARY KEY (conversation_id, label),
	FOREIGN KEY(conversation_id) REFERENCES conversation (id) ON DELETE CASCADE,
	FOREIGN KEY(message_id) REFERENCES message (id) ON DELETE CASCADE
);
CREATE INDEX checkpoint_by_message ON checkpoint (message_id);

-- A move of a head. Moves form a tree by prev_id, as in an editor that forgets
-- nothing: undo steps to prev_id, redo to the newest move that follows.
CREATE TABLE move (
	conversation_id INTEGER NOT NULL,  -- whose it is
	id INTEGER NOT NULL,  -- counts the conversation's moves, from 1
	prev_id INTEGER,  -- the move that was current before it
	from_id INTEGER,  -- the head before; null: none
	to_id INTEGER,  -- the head after; null: none
	cause TEXT NOT NULL,  -- append, branch, edit, retry, rewind, import, reclaim
	created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
	PRIMARY KEY (conversation_id, id),
	FOREIGN KEY(conversation_id) REFERENCES conversation (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

-- A message of a turn that waits for its tool results: in flight, outside the tree.
CREATE TABLE draft (
	conversation_id INTEGER NOT NULL,  -- whose it is
	turn INTEGER NOT NULL,  -- a random number for each turn
	position INTEGER NOT NULL,  -- its place among them, from 0
	parent_id INTEGER,  -- the boundary that the first follows
	format TEXT NOT NULL,  -- as in message
	usage TEXT,  -- as in message
	model TEXT,  -- as in message
	"key" TEXT,  -- as in message
	meta TEXT,  -- as in message
	created_at INTEGER NOT NULL,  -- when it was added
	content TEXT NOT NULL,  -- as in message, never in a blob
	PRIMARY KEY (conversation_id, turn, position),
	FOREIGN KEY(conversation_id) REFERENCES conversation (id) ON DELETE CASCADE
);
