-- Second version of the file of API keys: which keys changed, in order. A server reads only these after each change,
-- instead of all keys. The triggers also see changes that an operator makes by hand.
PRAGMA user_version = 2;

CREATE TABLE key_change (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,          -- never used twice
  key_id   TEXT NOT NULL
) STRICT;

CREATE TRIGGER api_key_inserted AFTER INSERT ON api_key BEGIN
  INSERT INTO key_change (key_id) VALUES (NEW.id);
END;

CREATE TRIGGER api_key_updated AFTER UPDATE ON api_key BEGIN
  INSERT INTO key_change (key_id) VALUES (OLD.id), (NEW.id);
END;

CREATE TRIGGER api_key_deleted AFTER DELETE ON api_key BEGIN
  INSERT INTO key_change (key_id) VALUES (OLD.id);
END;
