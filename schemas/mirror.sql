-- The SQLite mirror: the same ranges as the range file, for SQL. Verified against it range by range at every build.
PRAGMA application_id = 1229996628; -- 'IPAT'
PRAGMA user_version = 1;

-- Facts about the release: as_of, tool_version.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Where answers come from. Listed sources answer in the order of their priority, the highest first.
CREATE TABLE source (
  layer       INTEGER PRIMARY KEY, -- bit number in the column `sources`; a higher layer covers a lower one
  id          TEXT NOT NULL UNIQUE,
  version     TEXT NOT NULL,
  license     TEXT NOT NULL,
  attribution TEXT NOT NULL
) STRICT;

CREATE TABLE country (
  code  TEXT PRIMARY KEY,          -- ISO 3166-1 alpha-2, and XK
  name  TEXT NOT NULL,
  is_eu INTEGER NOT NULL CHECK (is_eu IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Each range runs from `first` to `last`, both inclusive; together they cover the whole space. Either a country is named
-- or a reason: why there is none, or the scheme (6to4, nat64, teredo) whose embedded IPv4 address answers.
CREATE TABLE ipv4_range (
  first        INTEGER PRIMARY KEY, -- the address as a number, 0 to 2^32 - 1
  last         INTEGER NOT NULL,
  country_code TEXT REFERENCES country (code),
  reason       TEXT,
  sources      INTEGER NOT NULL     -- the layers that answered within the range, bit by source.layer
) STRICT;

CREATE TABLE ipv6_range (
  first        BLOB PRIMARY KEY,    -- the address as 16 bytes, network order
  last         BLOB NOT NULL,
  country_code TEXT REFERENCES country (code),
  reason       TEXT,
  sources      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For people: both families, addresses as text, names instead of numbers.
CREATE VIEW readable AS
SELECT
  4 AS family,
  printf('%d.%d.%d.%d', first >> 24, first >> 16 & 255, first >> 8 & 255, first & 255) AS first_address,
  printf('%d.%d.%d.%d', last >> 24, last >> 16 & 255, last >> 8 & 255, last & 255) AS last_address,
  country_code,
  name AS country,
  coalesce(is_eu, 0) AS is_eu,
  reason,
  (SELECT group_concat(id, ', ') FROM (SELECT id FROM source WHERE sources >> layer & 1 ORDER BY layer DESC)) AS sources
FROM ipv4_range LEFT JOIN country ON code = country_code
UNION ALL
SELECT
  6,
  lower(substr(hex(first), 1, 4) || ':' || substr(hex(first), 5, 4) || ':' || substr(hex(first), 9, 4) || ':' || substr(hex(first), 13, 4)
    || ':' || substr(hex(first), 17, 4) || ':' || substr(hex(first), 21, 4) || ':' || substr(hex(first), 25, 4) || ':' || substr(hex(first), 29, 4)),
  lower(substr(hex(last), 1, 4) || ':' || substr(hex(last), 5, 4) || ':' || substr(hex(last), 9, 4) || ':' || substr(hex(last), 13, 4)
    || ':' || substr(hex(last), 17, 4) || ':' || substr(hex(last), 21, 4) || ':' || substr(hex(last), 25, 4) || ':' || substr(hex(last), 29, 4)),
  country_code,
  name,
  coalesce(is_eu, 0),
  reason,
  (SELECT group_concat(id, ', ') FROM (SELECT id FROM source WHERE sources >> layer & 1 ORDER BY layer DESC))
FROM ipv6_range LEFT JOIN country ON code = country_code;
