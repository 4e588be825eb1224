-- API keys. Only the SHA-256 of a key is stored. A key has 256 random bits, so a hash without salt cannot be reversed.
PRAGMA application_id = 1229996363; -- 'IPAK'
PRAGMA user_version = 1;

CREATE TABLE api_key (
  id          TEXT PRIMARY KEY,                        -- how people refer to a key; not a part of the key
  hash        BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  label       TEXT NOT NULL,
  rate        INTEGER CHECK (rate > 0),                -- addresses a minute; null for the server's --rate
  -- The origins from which the key works, as a JSON array of texts such as "https://example.com"; null for no restriction.
  origins     TEXT CHECK (json_type(origins) = 'array'),
  self_issued INTEGER NOT NULL CHECK (self_issued IN (0, 1)),
  created     TEXT NOT NULL,                           -- ISO 8601, UTC
  expires     TEXT,                                    -- ISO 8601, UTC; null if it never expires
  revoked     TEXT                                     -- ISO 8601, UTC; null while the key is valid
) STRICT, WITHOUT ROWID;

-- To remove the keys that have expired.
CREATE INDEX api_key_expires ON api_key (expires) WHERE expires IS NOT NULL;

-- How many keys were made by signing up, by network, in the last hour. A network is stored as 20 bits of a hash with the
-- secret: 4,096 IPv4 addresses share a number, so that it names nobody.
CREATE TABLE sign_up (
  network INTEGER PRIMARY KEY,
  made    INTEGER NOT NULL,
  ends    INTEGER NOT NULL                             -- when the count is forgotten, in milliseconds since 1970
) STRICT;

CREATE TABLE sign_up_secret (secret BLOB NOT NULL) STRICT;
INSERT INTO sign_up_secret VALUES (randomblob(32));
