-- Reserves addresses in the window of one key, which several servers share.
--
-- KEYS[1]  the addresses that are counted in the window; it expires with the window
-- ARGV     1 the key's rate; 2 how many addresses are needed; 3 how many may be reserved; 4 the window in milliseconds
-- Returns  reserved, used, resetIn (see Reservation in src/api/rates/rate-windows.ts)
local limit, needed, up_to = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local free = math.max(0, limit - used)
local reserved = 0
if needed <= free then reserved = math.max(needed, math.min(up_to, free)) end
if reserved > 0 then used = redis.call('INCRBY', KEYS[1], reserved) end
local reset_in = redis.call('PTTL', KEYS[1])
if reset_in == -1 then
  reset_in = tonumber(ARGV[4])
  redis.call('PEXPIRE', KEYS[1], reset_in)
end
return { reserved, used, math.max(0, reset_in) }
