-- The Custodian's swap: a request that carries the stand-in of a held secret, in a header and on a path of that secret, leaves with the
-- value. Which secrets count stands in the metadata of the route ("held"): so each bound host has its own, and every other way has none.
-- A value is read from its file for each request, because the kubelet replaces the file when the value changes.

local VALUES = "/etc/jr2/custodian/values/"
local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- value_of reads the first line of a value's file; nil and why when no header can carry it.
local function value_of(name)
  local file = io.open(VALUES .. name, "r")
  if file == nil then
    return nil, "is not there"
  end
  local value = file:read("*l")
  file:close()
  value = value and value:gsub("\r$", "") or ""
  if value == "" then
    return nil, "is empty"
  end
  if value:find("[^\32-\126]") then
    return nil, "holds a byte that is no printable ASCII"
  end
  return value
end

-- find gives where a stand-in begins and ends: not where it is only a part of a longer name, such as another secret's stand-in.
local function find(text, stand_in, from)
  while true do
    local first, last = text:find(stand_in, from, true)
    if first == nil then
      return nil
    end
    local before, after = text:sub(first - 1, first - 1), text:sub(last + 1, last + 1)
    if (first == 1 or not before:find("[%w_-]")) and not after:find("[%w_]") then
      return first, last
    end
    from = first + 1
  end
end

local function put(text, stand_in, value)
  local out, from = "", 1
  while true do
    local first, last = find(text, stand_in, from)
    if first == nil then
      return out .. text:sub(from)
    end
    out = out .. text:sub(from, first - 1) .. value
    from = last + 1
  end
end

-- decode reads base64; nil when the text is none.
local function decode(text)
  local bits, count, out = 0, 0, {}
  for i = 1, #text do
    local c = text:sub(i, i)
    if c == "=" then
      break
    end
    local at = ALPHABET:find(c, 1, true)
    if at == nil then
      return nil
    end
    bits, count = bits * 64 + at - 1, count + 6
    if count >= 8 then
      count = count - 8
      out[#out + 1] = string.char(math.floor(bits / 2 ^ count))
      bits = bits % 2 ^ count
    end
  end
  return table.concat(out)
end

local function encode(text)
  local out = {}
  for i = 1, #text, 3 do
    local a, b, c = text:byte(i, i + 2)
    local bits = a * 65536 + (b or 0) * 256 + (c or 0)
    for k = 3, 0, -1 do
      local at = math.floor(bits / 64 ^ k) % 64 + 1
      out[#out + 1] = ALPHABET:sub(at, at)
    end
    if b == nil then
      out[#out - 1] = "="
    end
    if c == nil then
      out[#out] = "="
    end
  end
  return table.concat(out)
end

-- Basic authentication hides a stand-in in base64, as git and many clients send it.
local function basic(text)
  local scheme, rest = text:match("^([Bb][Aa][Ss][Ii][Cc] +)([%w+/=]+)$")
  if scheme == nil then
    return nil
  end
  return scheme, decode(rest)
end

-- swap gives a header's text with the value in the place of the stand-in; nil when it does not carry the stand-in.
local function swap(text, stand_in, value)
  if find(text, stand_in, 1) then
    return value and put(text, stand_in, value) or text
  end
  local scheme, plain = basic(text)
  if plain and find(plain, stand_in, 1) then
    return value and scheme .. encode(put(plain, stand_in, value)) or text
  end
  return nil
end

-- within says that a path lies under one of the prefixes. A path that another program may read as another one lies under none.
local function within(path, prefixes)
  if prefixes == nil then
    return true
  end
  path = path:match("^[^?#]*")
  local lower = path:lower()
  for _, trick in ipairs({ "..", "//", ";", "\\", "%2e", "%2f", "%5c" }) do
    if lower:find(trick, 1, true) then
      return false
    end
  end
  for _, prefix in ipairs(prefixes) do
    if path == prefix or path:sub(1, #prefix) == prefix and (prefix:sub(-1) == "/" or path:sub(#prefix + 1, #prefix + 1) == "/") then
      return true
    end
  end
  return false
end

-- values lists what a header holds, in its order.
local function values(headers, name)
  local all = {}
  for i = 0, headers:getNumValues(name) - 1 do
    all[#all + 1] = headers:getAtIndex(name, i)
  end
  return all
end

-- give swaps a secret in one header; an answer to the client when it can't.
local function give(headers, name, secret)
  local all, changed = values(headers, name), false
  for i, text in ipairs(all) do
    if swap(text, secret.standIn) then
      local value, why = value_of(secret.name)
      if value == nil then
        return "custodian: the value of " .. secret.name .. " " .. why .. "\n"
      end
      all[i], changed = swap(text, secret.standIn, value), true
    end
  end
  if changed then
    headers:remove(name)
    for _, text in ipairs(all) do
      headers:add(name, text)
    end
  end
  return nil
end

function envoy_on_request(handle)
  local held = handle:metadata():get("held")
  if held == nil then
    return
  end
  local headers = handle:headers()
  for _, secret in ipairs(held) do
    if within(headers:get(":path") or "", secret.paths) then
      for _, name in ipairs(secret.headers) do
        local problem = give(headers, name, secret)
        if problem then
          handle:respond({ [":status"] = "503" }, problem)
          return
        end
      end
    end
  end
end
