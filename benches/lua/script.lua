-- What the interpreter runs, again and again, each time with another seed.
local seed = ...
local state = seed * 7919 % 65521 + 1
local function random(limit)
  state = (state * 75 + 74) % 65537
  return state % limit + 1
end

local Account = {}
Account.__index = Account
function Account.new(owner) return setmetatable({ owner = owner, balance = 0, log = {} }, Account) end
function Account:deposit(amount)
  if amount <= 0 then error("nothing to deposit") end
  self.balance = self.balance + amount
  self.log[#self.log + 1] = amount
end
function Account:average()
  local sum = 0
  for _, amount in ipairs(self.log) do sum = sum + amount end
  return #self.log > 0 and sum / #self.log or 0
end

local function words(count)
  local text = {}
  for index = 1, count do
    local word = {}
    for letter = 1, random(7) do word[letter] = string.char(96 + random(26)) end
    text[index] = table.concat(word)
  end
  return table.concat(text, " ")
end

local function count(text)
  local found = {}
  for word in text:gmatch("%a+") do found[word] = (found[word] or 0) + 1 end
  local order = {}
  for word in pairs(found) do order[#order + 1] = word end
  table.sort(order, function(a, b)
    if found[a] ~= found[b] then return found[a] > found[b] end
    return a < b
  end)
  return order, found
end

local function tree(depth)
  if depth == 0 then return { value = random(100) } end
  return { left = tree(depth - 1), right = tree(depth - random(2) < 0 and 0 or depth - 1), value = random(100) }
end
local function sum(node) return node and node.value + sum(node.left) + sum(node.right) or 0 end

local function primes(limit)
  local sieve, found = {}, {}
  for number = 2, limit do
    if not sieve[number] then
      found[#found + 1] = number
      for multiple = number * number, limit, number do sieve[multiple] = true end
    end
  end
  return found
end

local function each(list)
  return coroutine.wrap(function()
    for index, value in ipairs(list) do coroutine.yield(index, value) end
  end)
end

local jobs = {
  function()
    local account = Account.new("owner " .. seed)
    for _ = 1, 20 + random(30) do pcall(account.deposit, account, random(90) - 10) end
    return string.format("%s: %d, %.2f", account.owner, account.balance, account:average())
  end,
  function()
    local order, found = count(words(40 + random(60)))
    local shown = {}
    for index = 1, math.min(#order, 10) do shown[index] = order[index] .. "=" .. found[order[index]] end
    return table.concat(shown, ",")
  end,
  function() return sum(tree(3 + random(4))) end,
  function()
    local total = 0
    for index, prime in each(primes(100 + random(300))) do total = total + index * prime % 17 end
    return total
  end,
  function()
    local text = words(20 + random(20))
    text = text:gsub("(%a)(%a*)", function(first, rest) return first:upper() .. rest end)
    return text:rep(2, "; "):reverse():find("a", 1, true)
  end,
  function()
    local list = {}
    for index = 1, 50 + random(100) do list[index] = random(1000) end
    table.sort(list)
    table.remove(list, random(#list))
    table.insert(list, random(#list), -1)
    return select("#", table.unpack(list))
  end,
}

local results = {}
for _ = 1, 12 do results[#results + 1] = tostring(jobs[random(#jobs)]()) end
return table.concat(results, "\n")
