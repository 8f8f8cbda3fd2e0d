-- Large texts of queued rows. SQLite writes a whole row anew with each change of it, and a claim changes the rows it
-- takes, so a large `data` is kept here, under the number of its message (`seq`) or activity (`id`), and is empty there.
-- The triggers delete it with its row, whoever deletes that.
CREATE TABLE payload (
    id   INTEGER PRIMARY KEY,
    data TEXT NOT NULL
);
CREATE TRIGGER message_payload AFTER DELETE ON message WHEN old.data = '' BEGIN
    DELETE FROM payload WHERE id = old.seq;
END;
CREATE TRIGGER activity_payload AFTER DELETE ON activity WHEN old.data = '' BEGIN
    DELETE FROM payload WHERE id = old.id;
END;
