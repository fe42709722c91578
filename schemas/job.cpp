// SPDX-License-Identifier: Apache-2.0
#include "schemas/job.hpp"

#include "schemas/check_value.hpp"
#include "schemas/codec.hpp"
#include "schemas/injection.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace plateau {

namespace {

constexpr std::int64_t largest_dimension = 1 << 20;
constexpr std::int64_t most_timed_requests = std::int64_t{1} << 25; // of a case: 512 MiB of samples on each rank
constexpr std::int64_t largest_tensor = std::int64_t{1} << 30;
constexpr std::size_t most_problems_listed = 50;

json integer(std::int64_t least, std::int64_t most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}
json seconds() { return {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 604800}}; }
json boolean() { return {{"type", "boolean"}}; }
json text() { return {{"type", "string"}, {"minLength", 1}}; }
json choice(json allowed) { return {{"type", "string"}, {"enum", std::move(allowed)}}; }
json list_of(json item) {
  return {{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}, {"uniqueItems", true}};
}

template <auto Member>
json get_member(job const& j) {
  return json(j.*Member);
}
template <auto Member>
void set_member(job& j, json const& value) {
  value.get_to(j.*Member);
}

// A field whose JSON value is its member as it is.
template <auto Member>
job_field plain(std::string_view name, json schema, std::string_view help) {
  return {name, help, std::move(schema), get_member<Member>, set_member<Member>};
}

json get_soak(job const& j) {
  if (j.soak.seconds) return {{"windows", j.soak.windows}, {"seconds", *j.soak.seconds}};
  return {{"windows", j.soak.windows}, {"requests_per_window", requests_per_soak_window(j)}};
}
void set_soak(job& j, json const& value) {
  j.soak = {};
  j.soak.windows = value.value("windows", j.soak.windows);
  if (value.contains("requests_per_window")) j.soak.requests_per_window = value["requests_per_window"];
  if (value.contains("seconds")) j.soak.seconds = value["seconds"];
}
void check_soak(json const& value, std::string const& where, std::vector<problem>& problems) {
  if (!value.contains("seconds")) return;
  if (value.contains("requests_per_window"))
    problems.push_back({where, "seconds and requests_per_window contradict each other; give one of them, as in "
                               "{\"windows\": 12, \"seconds\": 3600}"});
  if (value.value("windows", std::int64_t{1}) == 0)
    problems.push_back({where, "seconds without a window to divide them; needs windows >= 1, or no seconds"});
}

json get_env(job const& j) {
  auto out = json::object();
  for (auto const& [name, value] : j.env) out[name] = value;
  return out;
}
void set_env(job& j, json const& value) {
  j.env.clear();
  for (auto const& [name, text] : value.items()) j.env[name] = text.get<std::string>();
}

json get_timeouts(job const& j) {
  auto const& t = j.timeouts_s;
  return {{"compile", t.compile},
          {"prepare", t.prepare},
          {"stall", t.stall},
          {"collective", t.collective},
          {"fabric", t.fabric}};
}
void set_timeouts(job& j, json const& value) {
  deadlines const fallback;
  j.timeouts_s = {value.value("compile", fallback.compile), value.value("prepare", fallback.prepare),
                  value.value("stall", fallback.stall), value.value("collective", fallback.collective),
                  value.value("fabric", fallback.fabric)};
}

void check_inject(json const& value, std::string const& where, std::vector<problem>& problems) {
  for (std::size_t i = 0; i < value.size(); ++i)
    read_injection(value[i].get<std::string>(), where + "/" + std::to_string(i), problems);
}

json get_dtype(job const& j) { return j.dtype ? json(*j.dtype) : json(nullptr); }
void set_dtype(job& j, json const& value) { j.dtype = value.get<std::string>(); }

std::vector<job_field> make_fields() {
  std::vector<job_field> f;
  f.push_back(plain<&job::name>("name", text(), "label of the run; by default the job file's stem"));
  f.push_back(plain<&job::workload>("workload", choice({"encoder_block", "noop"}), "what a request computes"));
  f.push_back(plain<&job::device>("device", choice({"auto", "cuda", "cpu"}),
                                  "where it runs; auto: on the GPUs if any is visible, else on the CPU"));
  f.push_back({"dtype", "number format; by default float16 on CUDA, float32 on the CPU",
               choice({"float32", "float16", "bfloat16", "torch.float32", "torch.float16", "torch.bfloat16"}),
               get_dtype, set_dtype});
  f.push_back(plain<&job::hidden>("hidden", integer(1, 65536), "features of the model"));
  f.push_back(plain<&job::batch>("batch", integer(1, largest_dimension), "sequences in a request"));
  f.push_back(plain<&job::seq_len>("seq_len", integer(1, largest_dimension), "tokens in a sequence"));
  f.push_back(plain<&job::warmup>("warmup", integer(0, 100'000'000), "untimed requests per stream thread"));
  f.push_back(plain<&job::requests_per_worker>("requests_per_worker", integer(1, 100'000'000),
                                               "timed requests per stream thread"));
  f.push_back(plain<&job::concurrency_levels>("concurrency_levels", list_of(integer(1, 1024)),
                                              "stream threads per device; a case for each level"));
  f.push_back(plain<&job::modes>(
      "modes", list_of(choice({"eager", "compiled", "compiled_aten", "arena", "arena_graph", "arena_planned"})),
      "how the model is executed; a case for each mode"));
  f.push_back(plain<&job::compile_mode>("compile_mode", choice({"default", "max-autotune"}),
                                        "passed to the compiler of the compiled modes"));
  f.push_back(plain<&job::inductor_gemm_backends>(
      "inductor_gemm_backends", text(), "passed to the compiler, as in ATEN,TRITON; compiled_aten: always ATEN"));
  f.push_back(plain<&job::allow_tf32>("allow_tf32", boolean(), "CUDA: float32 matrix products in TF32"));
  f.push_back(plain<&job::use_inplace_residual>("use_inplace_residual", boolean(), "do the residual add in place"));
  f.push_back(plain<&job::random_seed>("random_seed", integer(0, INT64_MAX), "of weights and inputs"));
  f.push_back(plain<&job::repeats>("repeats", integer(1, 1000), "how often the whole grid is run"));
  f.push_back(plain<&job::intra_op_threads>("intra_op_threads", integer(1, 1024), "CPU: threads inside each operator"));
  f.push_back(plain<&job::isolation>("isolation", choice({"case", "run"}),
                                     "case: each case gets a fresh worker; run: one worker for all cases"));
  f.push_back(plain<&job::stream_threads>("stream_threads", choice({"persistent", "fresh"}),
                                          "persistent: warm-up on the timed threads; fresh: on the main thread, the "
                                          "timed threads are new"));
  f.push_back(plain<&job::sync>("sync", choice({"spin", "yield", "blocking"}), "CUDA: how a thread waits for the GPU"));
  f.push_back(
      plain<&job::fabric>("fabric", choice({"auto", "check", "off"}),
                          "check before the first case that all GPUs can talk to each other through NCCL; auto: "
                          "when there are several ranks, each with a GPU of its own"));
  f.push_back(
      {"soak",
       "memory phase after the timed one: windows, and requests per stream thread in each (by default a quarter "
       "of requests_per_worker, at least 10) or the seconds that all windows take together",
       {{"type", "object"},
        {"properties",
         {{"windows", integer(0, 100'000)}, {"requests_per_window", integer(1, 100'000'000)}, {"seconds", seconds()}}},
        {"additionalProperties", false}},
       get_soak,
       set_soak,
       check_soak,
       false,
       {"requests_per_window", "seconds"}});
  f.push_back({"env",
               "environment variables of the worker, such as PYTORCH_ALLOC_CONF",
               {{"type", "object"}, {"properties", json::object()}, {"additionalProperties", {{"type", "string"}}}},
               get_env,
               set_env});
  f.push_back({"timeouts_s",
               "deadlines in seconds: to compile a package, to prepare a case, for a request that does not "
               "return, for a rank that gives no sign of life, for the fabric check",
               {{"type", "object"},
                {"properties",
                 {{"compile", seconds()},
                  {"prepare", seconds()},
                  {"stall", seconds()},
                  {"collective", seconds()},
                  {"fabric", seconds()}}},
                {"additionalProperties", false}},
               get_timeouts,
               set_timeouts});
  f.push_back({"inject",
               "faults to plant, such as leak:rank=1,every=50 or crash:case=eager.c4; each --inject adds one",
               {{"type", "array"}, {"items", text()}, {"uniqueItems", true}},
               get_member<&job::inject>,
               set_member<&job::inject>,
               check_inject,
               true});
  return f;
}

// JSON text as it is meant to be, or the problems of it: also a key given twice, which the JSON library lets
// pass, and nesting that no job needs.
json parse_text(std::string_view input, std::vector<problem>& problems) {
  struct level {
    std::set<std::string> keys;
    std::string at;
  };
  std::vector<level> open;
  auto const watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (static_cast<std::size_t>(depth) > deepest_nesting) throw format_error("nested more than 64 deep");
    if (event == json::parse_event_t::object_start) open.push_back({{}, open.empty() ? "" : open.back().at});
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key) {
      auto const key = parsed.get<std::string>();
      auto const& parent = open.size() > 1 ? open[open.size() - 2].at : std::string();
      open.back().at = pointer(parent, key);
      if (!open.back().keys.insert(key).second)
        problems.push_back({open.back().at, "given twice; each field may be given once"});
    }
    return true;
  };
  try {
    return json::parse(input, watch);
  } catch (format_error const& e) {
    problems.push_back({"", e.what() + std::string("; a job is an object of plain fields")});
  } catch (json::exception const& e) {
    std::string what = e.what(); // "[json.exception.parse_error.101] parse error at line 2, column 3: ..."
    if (auto const end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    auto printable = std::string();
    for (unsigned char const c : what) printable += c >= 32 && c < 127 ? static_cast<char>(c) : '?';
    problems.push_back({"", "not JSON (RFC 8259): " + printable});
  }
  return nullptr;
}

// One value as typed; text that does not fit is left for check_value to refuse.
json parse_typed(json const& schema, std::string const& typed) {
  if (schema["type"] == "string") return typed;
  std::vector<problem> problems;
  auto parsed = parse_text(typed, problems);
  return problems.empty() ? parsed : json(typed);
}

// "4,8"
json parse_list(json const& item, std::string const& typed) {
  auto out = json::array();
  for (std::size_t at = 0; at <= typed.size();) {
    auto const end = std::min(typed.find(',', at), typed.size());
    out.push_back(parse_typed(item, typed.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// "a=1,b=2", into what `into` holds already, less the alternatives of what is given. A part without "=" belongs to the
// value before it, since values such as PYTORCH_ALLOC_CONF's have commas of their own.
json parse_pairs(job_field const& field, std::string const& typed, json into) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t at = 0; at <= typed.size();) {
    auto const end = std::min(typed.find(',', at), typed.size());
    auto const part = typed.substr(at, end - at);
    if (auto const equals = part.find('='); equals != std::string::npos) {
      pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    } else if (!pairs.empty()) {
      pairs.back().second += ',' + part;
    } else {
      return typed;
    }
    at = end + 1;
  }
  if (!into.is_object()) into = json::object();
  auto const is_alternative = [&](std::string_view key) { return std::ranges::count(field.alternatives, key) > 0; };
  if (std::ranges::any_of(pairs, [&](auto const& pair) { return is_alternative(pair.first); }))
    for (auto const key : field.alternatives) into.erase(std::string(key));
  auto const& properties = field.schema["properties"];
  for (auto const& [key, value] : pairs)
    into[key] = parse_typed(properties.contains(key) ? properties[key] : json{{"type", "string"}}, value);
  return into;
}

json with_item(json const& before, std::string const& item) {
  auto out = before.is_null() ? json::array() : before;
  if (out.is_array()) out.push_back(item);
  return out; // else left for check_value to refuse
}

// What the user typed for a flag, as the JSON value its field needs. `before` is the field's value so far.
json parse_override(job_field const& field, std::string const& typed, json const& before) {
  if (!is_utf8(typed) || field.schema["type"] == "string") return typed;
  if (!typed.empty() && (typed[0] == '[' || typed[0] == '{')) return parse_typed(field.schema, typed);
  if (field.flag_adds) return with_item(before, typed);
  if (field.schema["type"] == "array") return parse_list(field.schema["items"], typed);
  if (field.schema["type"] == "object") return parse_pairs(field, typed, before);
  return parse_typed(field.schema, typed);
}

std::string list_problems(std::string const& source, std::vector<problem> const& problems) {
  std::size_t width = 0;
  auto const listed = std::span(problems).first(std::min(problems.size(), most_problems_listed));
  for (auto const& p : listed) width = std::max(width, p.where.size());
  auto text = source + ": " + std::to_string(problems.size()) + (problems.size() == 1 ? " problem" : " problems") +
              "; nothing was started";
  for (auto const& p : listed) {
    text += "\n  " + p.where;
    if (!p.where.empty()) text += std::string(width - p.where.size() + 2, ' ');
    text += p.what;
  }
  if (listed.size() < problems.size()) text += "\n  and " + std::to_string(problems.size() - listed.size()) + " more";
  return text + "\nfields: plateau validate --fields";
}

bool has_case(job const& j, std::string const& text) try {
  auto const id = parse_case_id(text);
  bool const counted = j.repeats > 1;
  return std::ranges::find(j.modes, id.mode) != j.modes.end() &&
         std::ranges::find(j.concurrency_levels, id.concurrency) != j.concurrency_levels.end() &&
         (counted ? id.repeat >= 1 && id.repeat <= j.repeats : id.repeat == 0);
} catch (format_error const&) {
  return false;
}

// A fault planted in a case that never runs would prove nothing.
void check_targets(job const& j, std::vector<problem>& problems) {
  for (std::size_t i = 0; i < j.inject.size(); ++i) {
    auto const where = "/inject/" + std::to_string(i);
    auto const target = read_injection(j.inject[i], where, problems).target;
    if (!target || has_case(j, *target)) continue;
    auto const example = case_id{j.modes.front(), j.concurrency_levels.front(), j.repeats > 1 ? 1 : 0}.text();
    problems.push_back({where, shown(*target) + " is no case of this job; needs one like " + example +
                                   " (plateau run JOB --dry-run lists them)"});
  }
}

// Limits that join several fields; each field on its own is fine.
void check_together(job const& j, std::vector<problem>& problems) {
  auto const most_threads = *std::ranges::max_element(j.concurrency_levels);
  if (j.requests_per_worker > most_timed_requests / most_threads)
    problems.push_back({"/requests_per_worker",
                        std::to_string(j.requests_per_worker) + " on " + std::to_string(most_threads) +
                            " stream threads; a case may time 2^25 requests (for longer runs: soak, repeats)"});
  if (j.batch * j.seq_len > largest_tensor / (4 * j.hidden))
    problems.push_back({"/batch", "batch x seq_len x 4 x hidden is over 2^30 elements; needs fewer"});
  if (j.batch > largest_tensor / j.batch)
    problems.push_back({"/batch", "the result, batch x batch, is over 2^30 elements; needs fewer"});
  for (auto const& [name, value] : j.env)
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
        value.find('\0') != std::string::npos)
      problems.push_back({pointer("/env", name), "not an environment variable's name and value"});
  check_targets(j, problems);
}

// Objects are compared key by key: one deadline that differs is not all of them.
void compare(std::string const& where, json const& before, json const& after, std::vector<job_difference>& all) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) return void(all.push_back({where, before, after}));
  std::set<std::string> keys;
  for (auto const* object : {&before, &after})
    for (auto const& [key, unused] : object->items()) keys.insert(key);
  for (auto const& key : keys) compare(pointer(where, key), before.value(key, json()), after.value(key, json()), all);
}

} // namespace

std::string flag_of(std::string_view field) {
  auto flag = "--" + std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::span<job_field const> job_fields() {
  static std::vector<job_field> const fields = make_fields();
  return fields;
}

job_error::job_error(std::string const& source, std::vector<problem> found)
    : input_error(list_problems(source, found)), problems(std::move(found)) {}

job parse_job(std::string_view input, std::string const& source, std::span<job_override const> overrides) {
  std::vector<problem> problems;
  auto document = parse_text(input, problems);
  if (!problems.empty()) throw job_error(source, problems);
  if (document.is_object() && document.contains("meta") && document.contains("results"))
    document = json(document["meta"]); // a summary: its meta is the job
  if (!document.is_object()) {
    problems.push_back({"", shown(document) + "; a job is a JSON object, as in {\"hidden\": 256}"});
    throw job_error(source, problems);
  }

  std::vector<std::string> known;
  for (auto const& field : job_fields()) known.emplace_back(field.name);
  job j;
  j.name = as_utf8(std::filesystem::path(source).stem().string());
  if (j.name.empty()) j.name = "job";
  for (auto const& [key, value] : document.items())
    if (std::ranges::find(known, key) == known.end())
      problems.push_back({pointer("", key), "unknown field" + did_you_mean(key, known)});
  for (auto const& [name, unused] : overrides)
    if (std::ranges::find(known, name) == known.end())
      problems.push_back({flag_of(name), "unknown field" + did_you_mean(name, known)});
  for (auto const& field : job_fields()) {
    auto const key = std::string(field.name);
    auto where = "/" + key;
    auto value = document.contains(key) ? document[key] : json();
    bool given = document.contains(key);
    for (auto const& typed : overrides) {
      if (typed.field != field.name) continue;
      value = parse_override(field, typed.text, value);
      where = flag_of(field.name);
      given = true;
    }
    if (!given) continue;
    auto const before = problems.size();
    check_value(value, field.schema, where, problems);
    if (problems.size() == before && field.check != nullptr) field.check(value, where, problems);
    if (problems.size() == before) field.set(j, value);
  }
  if (problems.empty()) check_together(j, problems);
  if (!problems.empty()) throw job_error(source, problems);
  return j;
}

json to_json(job const& j) {
  auto out = json::object();
  for (auto const& field : job_fields())
    if (auto value = field.get(j); !value.is_null()) out[std::string(field.name)] = std::move(value);
  return out;
}

std::vector<job_difference> differences(job const& before, job const& after) {
  std::vector<job_difference> all;
  for (auto const& field : job_fields())
    compare(pointer("", std::string(field.name)), field.get(before), field.get(after), all);
  return all;
}

std::string told(std::span<job_difference const> all, std::string_view before, std::string_view after) {
  auto const value = [](json const& v) { return v.is_null() ? std::string("absent") : shown(v); };
  std::string text;
  for (auto const& d : all)
    text += (text.empty() ? "" : "\n") + d.where + ": " + value(d.before) + " " + std::string(before) + ", " +
            value(d.after) + " " + std::string(after);
  return text;
}

std::vector<case_id> cases_of(job const& j) {
  std::vector<case_id> cases;
  for (std::int64_t repeat = 1; repeat <= j.repeats; ++repeat)
    for (auto const& mode : j.modes)
      for (auto const concurrency : j.concurrency_levels)
        cases.push_back({mode, concurrency, j.repeats > 1 ? repeat : 0});
  return cases;
}

job resolved_for(job j, std::string_view device) {
  j.device = std::string(device);
  if (!j.dtype) j.dtype = device == "cuda" ? "float16" : "float32";
  return j;
}

std::int64_t requests_per_soak_window(job const& j) {
  constexpr std::int64_t most_tracked = 1000;
  auto const quarter = std::max<std::int64_t>(10, j.requests_per_worker / 4);
  if (j.soak.seconds) return std::min(quarter, most_tracked);
  return j.soak.requests_per_window.value_or(quarter);
}

std::string_view dtype_name(job const& j) {
  if (!j.dtype) throw std::logic_error("the job's dtype is not resolved yet");
  return plain_dtype(*j.dtype);
}

std::string_view plain_dtype(std::string_view dtype) {
  constexpr std::string_view prefix = "torch.";
  return dtype.starts_with(prefix) ? dtype.substr(prefix.size()) : dtype;
}

json job_schema() {
  auto properties = json::object();
  for (auto const& field : job_fields()) {
    auto property = field.schema;
    property["description"] = field.help;
    if (auto fallback = field.get(job{}); !fallback.is_null() && field.name != "name")
      property["default"] = std::move(fallback);
    properties[std::string(field.name)] = std::move(property);
  }
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "A plateau job"},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

} // namespace plateau
