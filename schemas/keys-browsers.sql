-- Third version of the file of API keys: keys for browsers, and keys that people made for themselves by signing up.
PRAGMA user_version = 3;

-- The origins from which the key works, as a JSON array of texts such as "https://example.com"; null for no restriction.
ALTER TABLE api_key ADD COLUMN origins TEXT CHECK (json_type(origins) = 'array');

ALTER TABLE api_key ADD COLUMN self_issued INTEGER NOT NULL DEFAULT 0 CHECK (self_issued IN (0, 1));
