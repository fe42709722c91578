// SPDX-License-Identifier: Apache-2.0
#include "schemas/injection.hpp"

#include "schemas/check_value.hpp"
#include "schemas/codec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace plateau {

namespace {

constexpr std::int64_t most_requests = 1'000'000'000;
constexpr std::int64_t most_ranks = 1'000'000;

json integer(std::int64_t least, std::int64_t most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

// The keys of every kind, and those of one.
json keys(json own = json::object()) {
  json all{{"rank", integer(0, most_ranks - 1)},
           {"case", {{"type", "string"}, {"minLength", 1}}},
           {"after", integer(0, most_requests)}};
  all.update(own);
  return {{"type", "object"}, {"properties", std::move(all)}, {"additionalProperties", false}};
}

std::vector<fault_entry> make_entries() {
  return {{fault::leak, "every 50 requests of a stream thread a tensor of 4096 bytes is kept until the case ends",
           keys({{"bytes", integer(1, std::int64_t{1} << 40)}, {"every", integer(1, most_requests)}})},
          {fault::slow, "each request takes so much longer, its thread busy; without ms: twice its own time",
           keys({{"ms", {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 3'600'000}}}})},
          {fault::hang, "a request never returns", keys()},
          {fault::crash, "the worker dies of SIGSEGV", keys()},
          {fault::oom, "a request allocates more than the device has", keys()},
          {fault::device_error,
           "a request reads out of range: on CUDA the device is lost to the worker, as after any illegal "
           "access; on the CPU the case fails",
           keys()},
          {fault::garbage, "the worker sends its rank bytes that are no frame", keys()}};
}

// A value as its key needs it; text that does not fit is left for check_value to refuse.
json typed(json const& schema, std::string const& text) {
  auto const* const end = text.data() + text.size();
  auto const read_as = [&](auto value) -> std::optional<json> {
    auto const read = std::from_chars(text.data(), end, value);
    bool const whole = read.ec == std::errc() && read.ptr == end && std::isfinite(static_cast<double>(value));
    return whole ? std::optional<json>(value) : std::nullopt;
  };
  auto const type = schema.value("type", std::string());
  if (type == "integer") return read_as(std::int64_t{}).value_or(text);
  if (type == "number") return read_as(double{}).value_or(text);
  return text;
}

// "a=1,b=2"
json read_pairs(std::string_view text, json const& properties, std::string const& where,
                std::vector<problem>& problems) {
  auto out = json::object();
  for (std::size_t at = 0; at <= text.size();) {
    auto const end = std::min(text.find(',', at), text.size());
    auto const part = std::string(text.substr(at, end - at));
    auto const equals = std::min(part.find('='), part.size());
    auto const key = part.substr(0, equals);
    if (equals == part.size())
      problems.push_back({where, shown(part) + "; needs key=value, as in leak:rank=1,every=50"});
    else if (out.contains(key))
      problems.push_back({pointer(where, key), "given twice; each key may be given once"});
    else
      out[key] = typed(properties.value(key, json::object()), part.substr(equals + 1));
    at = end + 1;
  }
  return out;
}

fault_entry const* entry_named(std::string const& kind, std::string const& where, std::vector<problem>& problems) {
  auto allowed = json::array();
  for (auto const& entry : fault_entries()) {
    if (name_of(entry.kind) == kind) return &entry;
    allowed.push_back(name_of(entry.kind));
  }
  check_value(kind, {{"type", "string"}, {"enum", std::move(allowed)}}, where, problems);
  return nullptr;
}

} // namespace

std::span<fault_entry const> fault_entries() {
  static std::vector<fault_entry> const entries = make_entries();
  return entries;
}

injection read_injection(std::string const& text, std::string const& where, std::vector<problem>& problems) {
  injection out;
  out.text = text;
  auto const colon = std::min(text.find(':'), text.size());
  auto const* const entry = entry_named(text.substr(0, colon), where, problems);
  if (entry == nullptr) return out;
  out.kind = entry->kind;
  if (colon == text.size()) return out;

  auto const before = problems.size();
  auto const given = read_pairs(std::string_view(text).substr(colon + 1), entry->schema["properties"], where, problems);
  check_value(given, entry->schema, where, problems);
  if (problems.size() != before) return out;
  if (given.contains("rank")) out.rank = given["rank"];
  if (given.contains("case")) out.target = given["case"];
  if (given.contains("ms")) out.ms = given["ms"];
  out.after = given.value("after", out.after);
  out.bytes = given.value("bytes", out.bytes);
  out.every = given.value("every", out.every);
  return out;
}

std::vector<injection> injections_for(job const& j, case_id const& id, std::int64_t rank) {
  std::vector<problem> problems;
  std::vector<injection> planted;
  for (auto const& text : j.inject) {
    auto i = read_injection(text, "/inject", problems);
    if (i.rank.value_or(rank) == rank && i.target.value_or(id.text()) == id.text()) planted.push_back(std::move(i));
  }
  if (!problems.empty()) throw job_error(j.name, problems);
  return planted;
}

std::string warning_about(injection const& planted) {
  return "a fault was planted in this case: " + planted.text + "; its numbers say nothing of the model";
}

} // namespace plateau
