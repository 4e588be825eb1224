-- API keys. Only the SHA-256 of a key is stored. A key has 256 random bits, so a hash without salt cannot be reversed.
-- This is the first version of the file; keys-changes.sql makes the second one of it.
PRAGMA application_id = 1229996363; -- 'IPAK'
PRAGMA user_version = 1;

CREATE TABLE api_key (
  id      TEXT PRIMARY KEY,                            -- how people refer to a key; not a part of the key
  hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  label   TEXT NOT NULL,
  rate    INTEGER CHECK (rate > 0),                    -- addresses a minute; null for the server's --rate
  created TEXT NOT NULL,                               -- ISO 8601, UTC
  revoked TEXT                                         -- ISO 8601, UTC; null while the key is valid
) STRICT, WITHOUT ROWID;
