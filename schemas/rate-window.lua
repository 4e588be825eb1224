-- Takes addresses out of the sliding window of one key, which several servers share.
--
-- KEYS[1]  a hash: for each server, what it counted for the key in the last minute, as JSON:
--          {"ahead": time, "steps": [[time, addresses], ...]}, times in milliseconds of the clock of Redis
-- ARGV     1 the server; 2 the key's rate; 3 the least and 4 the most addresses to take; 5 the window, 6 the time that
--          addresses taken ahead may be used, in milliseconds; 7 the largest share of the free addresses that is taken
--          ahead; 8 what the server itself counted: [[age in milliseconds, addresses], ...]; 9 for how many milliseconds
--          it may still use addresses that it took ahead
-- Returns  granted, remaining, resetIn, retryIn, askAgainIn (see Grant in src/api/rates/rate-limit.ts)
--
-- Each server is right about what it counted itself, and sends all of it each time. So an answer that got lost counts
-- nothing, and a Redis that lost its data receives it again.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local server = ARGV[1]
local limit, least, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local window, lease, share = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local steps, used, ahead = {}, 0, 0
local servers = redis.call('HGETALL', KEYS[1])
for i = 1, #servers, 2 do
  if servers[i] ~= server then
    local entry, live = cjson.decode(servers[i + 1]), false
    for _, step in ipairs(entry.steps) do
      -- A step of the future is from before the clock was set back. It would never end.
      if step[1] > now - window and step[1] <= now + lease then
        live, used = true, used + step[2]
        table.insert(steps, step)
      end
    end
    if not live then redis.call('HDEL', KEYS[1], servers[i])
    elseif entry.ahead <= now + lease then ahead = math.max(ahead, entry.ahead) end
  end
end
local mine = {}
for _, step in ipairs(cjson.decode(ARGV[8])) do
  step[1] = now - step[1]
  used = used + step[2]
  table.insert(steps, step)
  table.insert(mine, step)
end
local aheadMine = now + tonumber(ARGV[9])

local free = math.max(0, limit - used)
local granted = 0
if free >= least then granted = math.max(least, math.min(most, math.floor(free * share))) end
local retryIn, needed = 0, math.max(1, least)
if needed > free then
  retryIn = window
  table.sort(steps, function(a, b) return a[1] < b[1] end)
  local freed = 0
  for _, step in ipairs(steps) do
    freed = freed + step[2]
    if freed >= used - limit + needed then retryIn = step[1] + window - now break end
  end
end
if granted > 0 then
  local step = { now, granted }
  table.insert(steps, step)
  table.insert(mine, step)
end
if granted > least then aheadMine = now + lease end
if #mine > 0 then
  redis.call('HSET', KEYS[1], server, cjson.encode({ ahead = aheadMine, steps = mine }))
  redis.call('PEXPIRE', KEYS[1], window + lease)
else
  redis.call('HDEL', KEYS[1], server)
end

local resetIn = 0
for _, step in ipairs(steps) do resetIn = math.max(resetIn, step[1] + window - now) end
ahead = math.max(ahead, aheadMine)
local askAgainIn = retryIn
if ahead > now then askAgainIn = math.min(retryIn, ahead - now) end
return { granted, free - granted, resetIn, retryIn, askAgainIn }
