-- Every statement that runs, named and commented. Parameters are :named.
-- Each statement on messages names its conversation, so that a store can be cut by it.

-- name: insert_conversation
-- Create one, unless the owner has one of this topic already.
INSERT INTO conversation (owner, topic, title, format, forked_from, forked_at, meta, created_at, updated_at)
VALUES (:owner, :topic, :title, :format, :forked_from, :forked_at, :meta, :now, :now)
ON CONFLICT (owner, topic) DO NOTHING
RETURNING id

-- name: conversation_by_id
SELECT id, owner, topic, title, format, head_id, forked_from, forked_at, meta, created_at, updated_at
FROM conversation WHERE id = :conversation

-- name: conversation_by_topic
SELECT id, owner, topic, title, format, head_id, forked_from, forked_at, meta, created_at, updated_at
FROM conversation WHERE owner = :owner AND topic = :topic

-- name: conversations
-- A page of the list, newest first, with the number of messages; after (updated, id).
SELECT c.id, c.owner, c.topic, c.title, c.format, c.head_id, c.forked_from, c.forked_at, c.meta,
       c.created_at, c.updated_at,
       (SELECT count(*) FROM message m WHERE m.conversation_id = c.id)
FROM conversation c
WHERE (:owner IS NULL OR c.owner = :owner) AND (c.updated_at, c.id) < (:updated, :id)
ORDER BY c.updated_at DESC, c.id DESC
LIMIT :limit

-- name: delete_conversation
-- Its messages, checkpoints, moves and drafts go with it.
DELETE FROM conversation WHERE id = :conversation

-- name: set_title
UPDATE conversation SET title = :title WHERE id = :conversation

-- name: head
-- Where the conversation stands: its head, its current move and its newest.
SELECT head_id, move_id, (SELECT max(id) FROM move WHERE conversation_id = :conversation)
FROM conversation WHERE id = :conversation

-- name: head_and_place
-- The same, what a message must know of the one it follows, and the largest id ever given, in one
-- look: for the hottest way.
SELECT c.head_id, c.move_id, (SELECT max(id) FROM move WHERE conversation_id = c.id),
       (SELECT max(seq) FROM sqlite_sequence WHERE name = 'message'),
       m.id, m.depth, m.open_calls, m.system_id
FROM conversation c LEFT JOIN message m ON m.id = ?2 AND m.conversation_id = c.id
WHERE c.id = ?1

-- name: head_and_message
-- The same as head, and a message that it may go to.
SELECT c.head_id, c.move_id, (SELECT max(id) FROM move WHERE conversation_id = c.id),
       m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM conversation c LEFT JOIN message m ON m.id = ?2 AND m.conversation_id = c.id
WHERE c.id = ?1

-- name: head_and_labelled
-- The same as head, and the message of a checkpoint.
SELECT c.head_id, c.move_id, (SELECT max(id) FROM move WHERE conversation_id = c.id),
       m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM conversation c
LEFT JOIN checkpoint k ON k.conversation_id = c.id AND k.label = ?2
LEFT JOIN message m ON m.id = k.message_id AND m.conversation_id = c.id
WHERE c.id = ?1

-- name: head_and_undone
-- The head, its current move, and the message that undo goes back to.
SELECT c.head_id, c.move_id, v.id, v.from_id, v.prev_id,
       m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM conversation c
LEFT JOIN move v ON v.conversation_id = c.id AND v.id = c.move_id
LEFT JOIN message m ON m.id = v.from_id AND m.conversation_id = c.id
WHERE c.id = ?1

-- name: set_head
UPDATE conversation SET head_id = ?, move_id = ?, updated_at = ? WHERE id = ?

-- name: insert_move
INSERT INTO move (conversation_id, id, prev_id, from_id, to_id, cause, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: next_move
-- What redo would do: the newest move that was made from here. Only what was undone is newer
-- than where we are.
SELECT id, to_id FROM move
WHERE conversation_id = :conversation AND id > coalesce(:move, 0) AND prev_id IS :move
ORDER BY id DESC LIMIT 1

-- name: moves
SELECT id, from_id, to_id, cause, created_at FROM move
WHERE conversation_id = :conversation ORDER BY id

-- name: place
-- What a message must know of the one it follows.
SELECT depth, open_calls, system_id, role FROM message
WHERE conversation_id = :conversation AND id = :id

-- name: insert_small_message
-- By position, in the order of the columns of the other statements: the hottest one.
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_message
-- The same, of which one content is null: what is large lies in a blob.
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, content, blob_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: last_message_id
-- The largest id ever given; ids are not given twice.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'message'

-- name: insert_blob
INSERT INTO blob (sha256, content) VALUES (:sha256, :content) ON CONFLICT (sha256) DO NOTHING

-- name: blob_id
SELECT id FROM blob WHERE sha256 = :sha256

-- name: blobs_of
SELECT DISTINCT blob_id FROM message WHERE conversation_id = :conversation AND blob_id IS NOT NULL

-- name: delete_blob_if_unused
DELETE FROM blob WHERE id = :blob AND NOT EXISTS (SELECT 1 FROM message WHERE blob_id = :blob)

-- name: message
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM message m
WHERE m.conversation_id = :conversation AND m.id = :id

-- name: children
-- In id order; of the roots when parent is null.
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM message m
WHERE m.conversation_id = :conversation AND m.parent_id IS :parent
ORDER BY m.id

-- name: leaves
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM message m
WHERE m.conversation_id = :conversation AND NOT EXISTS (
    SELECT 1 FROM message k WHERE k.conversation_id = :conversation AND k.parent_id = m.id)
ORDER BY m.id

-- name: all_ids
-- The ids of the whole tree as an index has them: in order, but for branches. (A sort of
-- a million would take 40 MB.)
SELECT id FROM message WHERE conversation_id = :conversation ORDER BY parent_id, id

-- name: messages_between
-- Messages by the range of their ids. The plus keeps SQLite from the index by conversation,
-- which would be read whole each time.
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM message m
WHERE +m.conversation_id = :conversation AND m.id BETWEEN :first AND :last
ORDER BY m.id

-- name: path
-- The newest :newest messages of a path, newest first. Rows leave as they are found, so it
-- costs what it returns. A parent must lie one step nearer the root, so that the walk ends
-- even in a damaged file. (CROSS JOIN keeps SQLite from turning the join around.)
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM message WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM path CROSS JOIN message m ON m.id = path.id
LIMIT :newest

-- name: path_stations
-- Every :step-th message of a path, and the leaf: where to walk from, to read it forwards.
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM message WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT id, depth FROM path WHERE depth % :step = :step - 1 OR id = :leaf

-- name: parents_below
-- Who follows whom between two ids, the newest parent first. Read from the index alone: to
-- follow a long path by it costs a tenth of walking the messages.
SELECT parent_id, id FROM message
WHERE conversation_id = :conversation AND parent_id >= :oldest AND parent_id < :leaf
ORDER BY parent_id DESC

-- name: newest_prompt
-- The newest user message at a boundary on a path: what retry answers again.
WITH RECURSIVE path (id, parent_id, depth, role, open_calls) AS (
    SELECT id, parent_id, depth, role, open_calls FROM message
    WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth, m.role, m.open_calls
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT id FROM path WHERE role = 'user' AND open_calls = 0 LIMIT 1

-- name: skeleton
-- What a tree is drawn from; no content is read.
SELECT id, parent_id, role, preview, depth, open_calls, tokens, created_at
FROM message WHERE conversation_id = :conversation ORDER BY id

-- name: message_by_key
SELECT id FROM message WHERE conversation_id = :conversation AND key = :key

-- name: messages_by_keys
-- Which of the keys in a JSON list are there. Many in one step, since importers ask for thousands.
SELECT m.key, m.id FROM json_each(:keys) AS wanted
CROSS JOIN message m ON m.conversation_id = :conversation AND m.key = wanted.value

-- name: copy_path
-- Fork: the path of :leaf into conversation :target. Along a path the depth numbers the
-- messages, so a copy's id is :base + depth, and its parent's is one less. Only ids are sorted,
-- not whole rows; were they copied in another order, the guard of parents would refuse it.
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, blob_id, content)
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM message WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT :base + m.depth, :target, CASE WHEN m.depth = 0 THEN NULL ELSE :base + m.depth - 1 END,
       m.role, m.format, m.depth, m.open_calls, m.tokens, m.usage, m.model, m.preview, m.key, m.meta,
       :base + (SELECT s.depth FROM message s WHERE s.id = m.system_id),
       NULL, m.created_at, m.blob_id, m.content
FROM (SELECT id FROM path ORDER BY depth LIMIT -1) AS path CROSS JOIN message m ON m.id = path.id

-- name: path_landmarks
-- The messages of a path that something else speaks of: marks and digests with a reference,
-- and those that bear a label. Few, on a path of any length.
WITH RECURSIVE path (id, parent_id, depth, ref_id) AS (
    SELECT id, parent_id, depth, ref_id FROM message
    WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth, m.ref_id
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT path.depth, path.ref_id, k.label, k.note, k.created_at
FROM path LEFT JOIN checkpoint k ON k.conversation_id = :conversation AND k.message_id = path.id
WHERE path.ref_id IS NOT NULL OR k.label IS NOT NULL

-- name: path_ids
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM message WHERE conversation_id = :conversation AND id = :leaf
    UNION ALL
    SELECT m.id, m.parent_id, m.depth
    FROM path JOIN message m ON m.id = path.parent_id
    WHERE m.conversation_id = :conversation AND m.depth = path.depth - 1
)
SELECT id, depth FROM path

-- name: set_reference
UPDATE message SET ref_id = :ref WHERE conversation_id = :conversation AND id = :id

-- name: insert_checkpoint
INSERT INTO checkpoint (conversation_id, label, message_id, note, created_at)
VALUES (:conversation, :label, :id, :note, :now)
ON CONFLICT (conversation_id, label) DO NOTHING

-- name: replace_checkpoint
INSERT INTO checkpoint (conversation_id, label, message_id, note, created_at)
VALUES (:conversation, :label, :id, :note, :now)
ON CONFLICT (conversation_id, label)
DO UPDATE SET message_id = excluded.message_id, note = excluded.note, created_at = excluded.created_at

-- name: checkpoint
SELECT label, message_id, note, created_at FROM checkpoint
WHERE conversation_id = :conversation AND label = :label

-- name: checkpoints
SELECT label, message_id, note, created_at FROM checkpoint
WHERE conversation_id = :conversation ORDER BY created_at, label

-- name: insert_draft
-- A message that was cancelled while it was being kept may come again: it takes its place.
INSERT OR REPLACE INTO draft (conversation_id, turn, position, parent_id, format, usage, model, key, meta, created_at, content)
VALUES (:conversation, :turn, :position, :parent, :format, :usage, :model, :key, :meta, :created_at, :content)

-- name: drafts
-- Turn by turn, each in its order: clocks step back.
SELECT turn, parent_id, format, usage, model, key, meta, created_at, content FROM draft
WHERE conversation_id = :conversation ORDER BY turn, position

-- name: draft_size
SELECT count(*) FROM draft WHERE conversation_id = :conversation AND turn = :turn

-- name: delete_draft
DELETE FROM draft WHERE conversation_id = :conversation AND turn = :turn

-- name: system_message
-- The newest system message on the path of :leaf.
SELECT m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens,
       m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at,
       CASE WHEN m.blob_id IS NULL THEN m.content
            ELSE (SELECT CAST(b.content AS TEXT) FROM blob b WHERE b.id = m.blob_id) END
FROM message leaf JOIN message m ON m.id = leaf.system_id
WHERE leaf.conversation_id = :conversation AND leaf.id = :leaf AND m.conversation_id = :conversation

-- name: conversation_ids
SELECT id FROM conversation ORDER BY id

-- name: check_cycles
-- A parent is older than its child, so that a walk to the root ends.
SELECT conversation_id, id, 'its parent ' || parent_id || ' is not older than it'
FROM message WHERE parent_id >= id

-- name: check_depths
SELECT m.conversation_id, m.id,
       'its depth is ' || m.depth || ', by its parent it is ' || coalesce(p.depth + 1, 0)
FROM message m LEFT JOIN message p ON p.id = m.parent_id AND p.conversation_id = m.conversation_id
WHERE (p.id IS NULL AND m.parent_id IS NULL AND m.depth <> 0)
   OR (p.id IS NOT NULL AND m.depth <> p.depth + 1)

-- name: check_parents
SELECT m.conversation_id, m.id, 'its parent ' || m.parent_id || ' is not in its conversation'
FROM message m LEFT JOIN message p ON p.id = m.parent_id AND p.conversation_id = m.conversation_id
WHERE m.parent_id IS NOT NULL AND p.id IS NULL

-- name: check_blobs
SELECT m.conversation_id, m.id, 'its content, blob ' || m.blob_id || ', is missing'
FROM message m LEFT JOIN blob b ON b.id = m.blob_id
WHERE m.blob_id IS NOT NULL AND b.id IS NULL

-- name: check_heads
SELECT c.id, c.head_id,
       CASE WHEN m.id IS NULL THEN 'the head points at no message of the conversation'
            ELSE 'the head points into a step: ' || m.open_calls || ' call(s) are open' END
FROM conversation c LEFT JOIN message m ON m.id = c.head_id AND m.conversation_id = c.id
WHERE c.head_id IS NOT NULL AND (m.id IS NULL OR m.open_calls <> 0)

-- name: check_checkpoints
SELECT k.conversation_id, k.message_id,
       'checkpoint ''' || k.label || ''' ' ||
       CASE WHEN m.id IS NULL THEN 'points at no message of the conversation'
            ELSE 'points into a step: ' || m.open_calls || ' call(s) are open' END
FROM checkpoint k
LEFT JOIN message m ON m.id = k.message_id AND m.conversation_id = k.conversation_id
WHERE m.id IS NULL OR m.open_calls <> 0

-- name: check_systems
SELECT m.conversation_id, m.id, 'it does not point at the newest system message on its path'
FROM message m LEFT JOIN message p ON p.id = m.parent_id AND p.conversation_id = m.conversation_id
WHERE m.system_id IS NOT CASE WHEN m.role = 'system' THEN m.id ELSE p.system_id END
  AND (m.parent_id IS NULL OR p.id IS NOT NULL)

-- name: all_blobs
SELECT id, sha256, content FROM blob
