/**
 * The store's side of shared budgets as functions of Redis 7 (`FUNCTION LOAD`): the twin of `policy/sharing`, where the
 * ideas are explained. A change here is a change there, and `test/contract/lease-functions.test.ts` compares the two.
 *
 * Traps that the text avoids: `..` on a Lua number keeps 14 digits, and an instant has 16, so every number is written
 * with `num`. All keys of a call have one hash tag, so that a cluster takes them. All results are whole numbers, because
 * Redis cuts fractions off.
 *
 * The version is part of the library's name: gateways of two versions can share one Redis for the time of a rolling
 * update, because each loads and calls its own functions. The keys hold the same facts for both.
 */
export const LEASE_LIBRARY = 'spillway_1'

const LEASE_TEXT = `local GRAINS = 60000000
local function num(x) return string.format('%.0f', x) end

local function member(argv)
  return { id = argv[1], epoch = argv[2], told = tonumber(argv[3]), ttl = tonumber(argv[4]) * 1000,
    forget = tonumber(argv[5]) * 1000, at = tonumber(argv[6]) } -- at: empty in service; an instant in tests
end

-- Hears one gateway, and moves the shard's clock: policy/sharing/shard-clock.ts.
local function advance(roster, state, a)
  local now = a.at
  if not now then local t = redis.call('TIME'); now = t[1] * 1000000 + t[2] end
  local s = redis.call('HMGET', state, 'epoch', 'heard', 'at', 'floor', 'floorUntil', 'emptied')
  local epoch, clock = s[1] or num(now), tonumber(s[2] or 0)
  local dt = s[1] and math.max(0, now - tonumber(s[3])) or 0
  local floor, floorUntil = tonumber(s[4] or 0), tonumber(s[5] or 0)
  for _, g in ipairs(redis.call('ZRANGEBYSCORE', roster, '(' .. num(now), '+inf')) do
    redis.call('ZADD', roster, num(now), g)
  end
  local before = redis.call('ZSCORE', roster, a.id)
  redis.call('ZADD', roster, num(now), a.id)
  redis.call('ZREMRANGEBYSCORE', roster, '-inf', num(now - a.forget))
  local emptied = s[6] == '1' or (a.told > 0 and a.epoch ~= epoch)
  if now >= floorUntil then floor = 0 end
  if a.told > floor and (floor > 0 or dt > a.ttl or emptied and now < tonumber(epoch) + a.forget) then
    if floor == 0 then floorUntil = now + a.forget end
    floor = a.told
  end
  local card = redis.call('ZCARD', roster)
  local n = math.max(card, floor)
  local live = redis.call('ZCOUNT', roster, '(' .. num(now - a.ttl), '+inf')
  clock = clock + math.floor(math.min(dt, a.ttl) * live / n)
  redis.call('HSET', state, 'epoch', epoch, 'heard', num(clock), 'at', num(now), 'floor', num(floor),
    'floorUntil', num(floorUntil), 'emptied', emptied and 1 or 0)
  return { now = now, clock = clock, epoch = epoch, n = n, card = card, live = live, emptied = emptied,
    gap = before and now - tonumber(before) or -1 }
end

-- One account of one gateway: policy/sharing/lease-shard.ts. ARGV from i: birth, perMinute, half, spent, granted,
-- deposited, want, epoch of the account's last answer, need.
local FIELDS = 9
local function answer(roster, key, id, shard, argv, i)
  local birth, perMinute, full = tonumber(argv[i]), tonumber(argv[i + 1]), tonumber(argv[i + 2]) * GRAINS
  local spent, granted, deposited = tonumber(argv[i + 3]), tonumber(argv[i + 4]), tonumber(argv[i + 5])
  local want, epoch, need = tonumber(argv[i + 6]), argv[i + 7], tonumber(argv[i + 8])
  local B, P, G, D = 'B:' .. id, 'P:' .. id, 'G:' .. id, 'D:' .. id
  local s = redis.call('HMGET', key, 'level', 'heard', B, P, G, D)
  local b = tonumber(s[3] or -1)
  if birth < b then return -1, 0 end
  local same = birth == b
  local level
  if s[1] then level = math.min(full, tonumber(s[1]) + math.max(0, shard.clock - tonumber(s[2])) * perMinute)
  elseif shard.emptied then level = math.min(full, shard.clock * perMinute)
  else level = full end
  local d = math.max(deposited, same and tonumber(s[6]) or 0)
  if same then level = math.min(full, level + (d - tonumber(s[6])) * GRAINS) end
  local p = math.max(spent, same and tonumber(s[4]) or 0)
  local isLost = epoch ~= '' and epoch ~= shard.epoch
  local g = math.max(granted, isLost and p or 0, same and tonumber(s[5]) or 0)
  if g < p then level = level - (p - g) * GRAINS; g = p end
  level = math.max(-full, level)
  local there = math.floor(level / GRAINS)
  local give = math.max(0, math.min(want - (g - p), there))
  if give > 0 and shard.live > 1 then give = math.min(give, math.max(1, math.floor(there / 2))) end
  if need > g - p + give and need <= g - p + there then give = need - (g - p) end
  level = level - give * GRAINS
  g = g + give
  redis.call('HSET', key, 'level', num(level), 'heard', num(shard.clock), B, num(birth), P, num(p), G, num(g), D, num(d))
  if redis.call('HLEN', key) > 2 + 4 * 2 * (shard.n + 1) then
    for _, field in ipairs(redis.call('HKEYS', key)) do
      local gone = string.match(field, '^[BPGD]:(.*)$')
      if gone and not redis.call('ZSCORE', roster, gone) then redis.call('HDEL', key, field) end
    end
  end
  redis.call('PEXPIRE', key, num(120000 + math.ceil(2 * full / math.max(1, perMinute) / 1000)))
  return g, math.floor(level / GRAINS)
end

-- KEYS 1 roster, 2 state, then one bucket for each account. ARGV 1-6 the gateway, then FIELDS for each account.
local function take(keys, argv)
  local m = member(argv)
  local shard = advance(keys[1], keys[2], m)
  local reply = { shard.n, shard.n - shard.live, shard.epoch, shard.gap }
  for k = 3, #keys do
    local granted, level = answer(keys[1], keys[k], m.id, shard, argv, 7 + (k - 3) * FIELDS)
    reply[#reply + 1] = granted
    reply[#reply + 1] = level
  end
  return reply
end

-- Slots of rooms, and what gateways tell each other: policy/sharing/room-grants.ts. KEYS 1 roster, 2 state, 3 reports,
-- then one for each room. ARGV 1-6 the gateway, 7 its report, then limit, held, granted, target, sequence for each room.
local ROOM_FIELDS = 5
local function grant(roster, key, m, shard, argv, i)
  local limit, held, granted = tonumber(argv[i]), tonumber(argv[i + 1]), tonumber(argv[i + 2])
  local target, sequence = tonumber(argv[i + 3]), tonumber(argv[i + 4])
  local others, own = 0, nil
  local all = redis.call('HGETALL', key)
  for f = 1, #all, 2 do
    local id = all[f]
    local h, g, s = string.match(all[f + 1], '^(%d+) (%d+) (%d+)$')
    if not redis.call('ZSCORE', roster, id) then redis.call('HDEL', key, id)
    elseif id == m.id then own = tonumber(s)
    else others = others + math.max(tonumber(h), tonumber(g)) end
  end
  if own and sequence < own then return -1 end
  local unknown = math.max(0, shard.n - shard.card)
  local give = math.min(target, math.max(0, limit - others - unknown * math.ceil(limit / shard.n)))
  if shard.emptied and shard.now < tonumber(shard.epoch) + m.ttl then give = math.min(give, math.max(granted, held)) end
  redis.call('HSET', key, m.id, num(held) .. ' ' .. num(give) .. ' ' .. num(sequence))
  redis.call('PEXPIRE', key, num(m.forget / 1000 + 60000))
  return give
end

local function exchange(roster, key, m, shard, text)
  local others = {}
  local all = redis.call('HGETALL', key)
  for f = 1, #all, 2 do
    local id = all[f]
    local at, said = string.match(all[f + 1], '^(%d+) (.*)$')
    if not redis.call('ZSCORE', roster, id) then redis.call('HDEL', key, id)
    elseif id ~= m.id and tonumber(at) > shard.now - m.ttl then
      others[#others + 1] = id
      others[#others + 1] = said
    end
  end
  redis.call('HSET', key, m.id, num(shard.now) .. ' ' .. text)
  redis.call('PEXPIRE', key, num(m.forget / 1000 + 60000))
  return others
end

local function room(keys, argv)
  local m = member(argv)
  local shard = advance(keys[1], keys[2], m)
  local reply = { shard.n, shard.n - shard.live, shard.epoch, shard.gap }
  for k = 4, #keys do reply[#reply + 1] = grant(keys[1], keys[k], m, shard, argv, 8 + (k - 4) * ROOM_FIELDS) end
  for _, text in ipairs(exchange(keys[1], keys[3], m, shard, argv[7])) do reply[#reply + 1] = text end
  return reply
end

-- The secret that names of prompts begin with: the first that was offered.
local function salt(keys, argv)
  redis.call('SET', keys[1], argv[1], 'NX')
  return redis.call('GET', keys[1])
end

local function leave(keys, argv) return redis.call('ZREM', keys[1], argv[1]) end
`

const NAMES = ['take', 'room', 'salt', 'leave'] as const

export const LEASE_FUNCTIONS = `#!lua name=${LEASE_LIBRARY}
${LEASE_TEXT}
${NAMES.map((name) => `redis.register_function('${LEASE_LIBRARY}_${name}', ${name})`).join('\n')}
`

/** The same text as a script that calls one of the functions, for servers that have no functions. */
export const leaseScript = (name: string): string =>
  `${LEASE_TEXT}\nreturn ${name.slice(LEASE_LIBRARY.length + 1)}(KEYS, ARGV)`
