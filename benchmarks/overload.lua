-- What the service does when far more is asked than it can answer, with a client that costs little.
--
--   QUERIES=queries.tsv INDEX=reuters wrk -t1 -c900 -d6s -s benchmarks/overload.lua http://127.0.0.1:8000
--
-- wrk keeps each connection and asks anew as soon as it is answered, refused or not; hence the more
-- connections, the more is asked. Tells how many were answered and refused, and how long either took.
-- `benchmarks.service_load` counts requests that arrive at a rate of their own, but takes as much of
-- a processor for each as the service does.

local function escaped(text)
  return (text:gsub("[^%w]", function(c) return string.format("%%%02X", c:byte()) end))
end

local threads = {}
function setup(thread) table.insert(threads, thread) end

function init()
  paths, asked = {}, 0
  answered, refused, other = 0, 0, 0
  local index = os.getenv("INDEX")
  for line in io.lines(os.getenv("QUERIES")) do
    table.insert(paths, "/search?index=" .. index .. "&q=" .. escaped(line:match("\t(.*)")))
  end
end

function request()
  asked = asked + 1
  return wrk.format("GET", paths[asked % #paths + 1])
end

function response(status)
  if status == 200 then answered = answered + 1
  elseif status == 503 then refused = refused + 1
  else other = other + 1 end
end

function done(summary, latency)
  local sums = { answered = 0, refused = 0, other = 0 }
  for _, thread in ipairs(threads) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local lost = summary.errors
  print(string.format(
    "answered %d, refused %d, other %d, lost %d in %.1f s; ms: p50 %.1f, p90 %.1f, p99 %.1f, at most %.1f",
    sums.answered, sums.refused, sums.other, lost.connect + lost.read + lost.write + lost.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(90) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3))
end
