-- Fourth version of the file of API keys: keys of many nodes, and only the last change of each key.
PRAGMA user_version = 4;

-- The signed file that the keys were last written to or read from.
CREATE TABLE key_file (
  direction TEXT PRIMARY KEY CHECK (direction IN ('exported', 'imported')),
  version   INTEGER NOT NULL,                          -- grows with each file; a smaller one is not imported
  hash      BLOB NOT NULL CHECK (length(hash) = 32)    -- SHA-256 of its keys
) STRICT, WITHOUT ROWID;

-- A server needs the last change of each key only, so the table has at most a row for each key that ever existed.
DELETE FROM key_change WHERE sequence NOT IN (SELECT max(sequence) FROM key_change GROUP BY key_id);
CREATE UNIQUE INDEX key_change_of_key ON key_change (key_id);

DROP TRIGGER api_key_inserted;
CREATE TRIGGER api_key_inserted AFTER INSERT ON api_key BEGIN
  DELETE FROM key_change WHERE key_id = NEW.id;
  INSERT INTO key_change (key_id) VALUES (NEW.id);
END;

DROP TRIGGER api_key_updated;
CREATE TRIGGER api_key_updated AFTER UPDATE ON api_key BEGIN
  DELETE FROM key_change WHERE key_id IN (OLD.id, NEW.id);
  INSERT INTO key_change (key_id) SELECT OLD.id UNION SELECT NEW.id;
END;

DROP TRIGGER api_key_deleted;
CREATE TRIGGER api_key_deleted AFTER DELETE ON api_key BEGIN
  DELETE FROM key_change WHERE key_id = OLD.id;
  INSERT INTO key_change (key_id) VALUES (OLD.id);
END;
