// SPDX-License-Identifier: Apache-2.0
#include "schemas/check_value.hpp"

#include "schemas/codec.hpp"

#include <algorithm>
#include <cctype>
#include <compare>
#include <cstdint>
#include <numeric>
#include <utility>

namespace plateau {

namespace {

// Characters added, left out or changed, whatever their case; two that changed places count once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  auto const same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// What others call our names; no edit leads from one to the other.
constexpr std::pair<std::string_view, std::string_view> other_names[] = {{"gpu", "cuda"},      {"fp32", "float32"},
                                                                         {"float", "float32"}, {"fp16", "float16"},
                                                                         {"half", "float16"},  {"bf16", "bfloat16"}};

std::string number(json const& n) { return n.dump(); }

std::string range(json const& schema) {
  std::string text;
  if (schema.contains("minimum")) text += " >= " + number(schema["minimum"]);
  if (schema.contains("exclusiveMinimum")) text += " > " + number(schema["exclusiveMinimum"]);
  if (schema.contains("maximum")) text += (text.empty() ? " <= " : " and <= ") + number(schema["maximum"]);
  return text;
}

std::vector<std::string> choices(json const& schema) {
  std::vector<std::string> out;
  for (auto const& choice : schema["enum"]) out.push_back(choice.get<std::string>());
  return out;
}

std::string joined(std::vector<std::string> const& parts) {
  std::string out;
  for (auto const& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

bool has_type(json const& value, std::string const& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return value.is_string();
}

// Exact for integers: as doubles, the first value above the largest 64-bit integer would be equal to it.
std::partial_ordering compared(json const& value, json const& limit) {
  if (value.is_number_float() || limit.is_number_float()) return value.get<double>() <=> limit.get<double>();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::partial_ordering::greater;
  return value.get<std::int64_t>() <=> limit.get<std::int64_t>();
}

bool in_range(json const& value, json const& schema) {
  return !(schema.contains("minimum") && compared(value, schema["minimum"]) < 0) &&
         !(schema.contains("exclusiveMinimum") && compared(value, schema["exclusiveMinimum"]) <= 0) &&
         !(schema.contains("maximum") && compared(value, schema["maximum"]) > 0);
}

void check_array(json const& value, json const& schema, std::string const& where, std::vector<problem>& problems) {
  if (value.size() < schema.value("minItems", std::size_t{0}))
    problems.push_back({where, shown(value) + "; needs " + needed(schema) + ", at least one"});
  for (std::size_t i = 0; i < value.size(); ++i) {
    auto const item = where + "/" + std::to_string(i);
    auto const before = problems.size();
    if (schema.contains("items")) check_value(value[i], schema["items"], item, problems);
    auto const first = std::find(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(i), value[i]);
    auto const repeated = first != value.begin() + static_cast<std::ptrdiff_t>(i);
    if (problems.size() == before && schema.value("uniqueItems", false) && repeated)
      problems.push_back({item, shown(value[i]) + " appears twice; each may appear once"});
  }
}

void check_object(json const& value, json const& schema, std::string const& where, std::vector<problem>& problems) {
  auto const properties = schema.value("properties", json::object());
  std::vector<std::string> known;
  for (auto const& [key, unused] : properties.items()) known.push_back(key);
  for (auto const& [key, item] : value.items()) {
    auto const at = pointer(where, key);
    if (properties.contains(key)) {
      check_value(item, properties[key], at, problems);
    } else if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
      check_value(item, schema["additionalProperties"], at, problems);
    } else {
      problems.push_back({at, "unknown field" + did_you_mean(key, known) + " (" + joined(known) + ")"});
    }
  }
}

} // namespace

std::string needed(json const& schema) {
  if (schema.contains("enum")) return "one of " + joined(choices(schema));
  auto const type = schema.value("type", std::string());
  if (type == "integer") return "an integer" + range(schema);
  if (type == "number") return "a number" + range(schema);
  if (type == "boolean") return "true or false";
  if (type == "array") return schema.contains("items") ? "a list, each " + needed(schema["items"]) : "a list";
  if (type == "object" && schema.contains("additionalProperties") && schema["additionalProperties"].is_object())
    return "an object, each value " + needed(schema["additionalProperties"]);
  if (type == "object") return "an object";
  return schema.value("minLength", 0) > 0 ? "a text (UTF-8) that is not empty" : "a text (UTF-8)";
}

std::string pointer(std::string const& where, std::string const& key) {
  std::string token;
  for (char const c : shown(key)) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return where + "/" + token.substr(1, token.size() - (token.ends_with('"') ? 2 : 1)); // without shown's quotes
}

std::optional<std::string> nearest(std::string_view typed, std::vector<std::string> const& known) {
  for (auto const& [other, name] : other_names)
    if (edit_distance(typed, other) == 0 && std::ranges::find(known, name) != known.end()) return std::string(name);
  constexpr std::size_t longest = 64;
  if (typed.size() > longest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(3, typed.size() / 2)) + 1;
  for (auto const& candidate : known)
    if (auto const distance = edit_distance(typed, candidate); distance < least) least = distance, best = candidate;
  return best;
}

std::string did_you_mean(std::string_view typed, std::vector<std::string> const& known) {
  auto const meant = nearest(typed, known);
  return meant ? "; did you mean " + *meant + "?" : "";
}

void check_value(json const& value, json const& schema, std::string const& where, std::vector<problem>& problems) {
  if (!has_type(value, schema.value("type", std::string("string")))) {
    problems.push_back({where, shown(value) + "; needs " + needed(schema)});
  } else if (schema.contains("enum")) {
    auto const allowed = choices(schema);
    if (std::ranges::find(allowed, value.get<std::string>()) != allowed.end()) return;
    auto const hint = did_you_mean(value.get<std::string>(), allowed);
    problems.push_back({where, shown(value) + (hint.empty() ? "; needs one of " + joined(allowed)
                                                            : hint + " (" + joined(allowed) + ")")});
  } else if (value.is_number()) {
    if (!in_range(value, schema)) problems.push_back({where, shown(value) + "; needs " + needed(schema)});
  } else if (value.is_string()) {
    auto const& text = value.get_ref<std::string const&>();
    if (text.size() < schema.value("minLength", std::size_t{0}) || !is_utf8(text))
      problems.push_back({where, shown(value) + "; needs " + needed(schema)});
  } else if (value.is_array()) {
    check_array(value, schema, where, problems);
  } else if (value.is_object()) {
    check_object(value, schema, where, problems);
  }
}

} // namespace plateau
