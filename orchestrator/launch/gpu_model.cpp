// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/gpu_model.hpp"

#include "schemas/check_value.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <vector>

namespace plateau {

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20, gib = std::int64_t{1} << 30;

known_gpu known(std::string_view alias, std::string name, int major, int minor, double reported_gib, std::int64_t sms) {
  return {alias, {std::move(name), major, minor, static_cast<std::int64_t>(reported_gib * 1024) * mib, sms}};
}

[[noreturn]] void refuse(std::string_view text, std::string const& why) {
  throw input_error("--gpu \"" + std::string(text) + "\": " + why + " (" + gpu_names() +
                    ", or sm=9.0,memory=141GiB,sms=132 for any other)");
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
  auto const end = text.data() + text.size();
  auto const parsed = std::from_chars(text.data(), end, into);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

bool read_capability(std::string_view text, gpu_model& into) {
  auto const dot = text.find('.');
  return dot != std::string_view::npos && read_number(text.substr(0, dot), into.major) &&
         read_number(text.substr(dot + 1), into.minor) && into.major >= 5 && into.minor >= 0;
}

// "141GiB" or "8192MiB".
bool read_memory(std::string_view text, gpu_model& into) {
  if (text.size() < 4) return false;
  auto const unit = text.substr(text.size() - 3);
  double amount = 0;
  if ((unit != "GiB" && unit != "MiB") || !read_number(text.substr(0, text.size() - 3), amount)) return false;
  if (!(amount >= 1 && amount <= 1e6)) return false; // nor NaN
  into.memory_bytes = static_cast<std::int64_t>(amount * (unit == "GiB" ? 1024 : 1)) * mib;
  return true;
}

gpu_model described(std::string_view text) {
  gpu_model gpu{"a GPU", 0, 0, 0, 0};
  std::vector<std::string_view> keys;
  for (auto rest = text; !rest.empty();) {
    auto const part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    auto const equals = std::min(part.find('='), part.size());
    auto const key = part.substr(0, equals), value = part.substr(std::min(equals + 1, part.size()));
    if (std::ranges::find(keys, key) != keys.end()) refuse(text, std::string(key) + " is there twice");
    keys.push_back(key);
    bool const good = key == "sm"       ? read_capability(value, gpu)
                      : key == "memory" ? read_memory(value, gpu)
                      : key == "sms"    ? read_number(value, gpu.multiprocessors) && gpu.multiprocessors > 0
                                        : false;
    if (!good) refuse(text, "\"" + std::string(part) + "\" is not understood");
  }
  if (gpu.major == 0 || gpu.memory_bytes == 0) refuse(text, "both sm and memory are needed");
  return gpu;
}

} // namespace

std::string gpu_model::text() const {
  std::array<char, 64> facts{};
  std::snprintf(facts.data(), facts.size(), " (sm_%d%d, %.4g GiB", major, minor,
                static_cast<double>(memory_bytes) / static_cast<double>(gib));
  auto const sms = multiprocessors > 0 ? ", " + std::to_string(multiprocessors) + " SMs" : "";
  return name + facts.data() + sms + ")";
}

std::string gpu_model::spec() const {
  auto const same = [this](known_gpu const& known) { return known.model.name == name; };
  auto const found = std::ranges::find_if(known_gpus(), same);
  if (found != known_gpus().end()) return std::string(found->alias);
  return "sm=" + std::to_string(major) + "." + std::to_string(minor) + ",memory=" + std::to_string(memory_bytes / mib) +
         "MiB" + (multiprocessors > 0 ? ",sms=" + std::to_string(multiprocessors) : "");
}

std::string gpu_names() {
  std::string text;
  for (auto const& gpu : known_gpus()) text += (text.empty() ? "" : ", ") + std::string(gpu.alias);
  return text;
}

std::span<known_gpu const> known_gpus() {
  static std::array const table{known("b200", "NVIDIA B200", 10, 0, 178.35, 148),
                                known("h200", "NVIDIA H200", 9, 0, 139.81, 132),
                                known("h100", "NVIDIA H100 80GB HBM3", 9, 0, 79.10, 132),
                                known("a100", "NVIDIA A100-SXM4-80GB", 8, 0, 79.15, 108),
                                known("a100-40", "NVIDIA A100-SXM4-40GB", 8, 0, 39.39, 108),
                                known("l40s", "NVIDIA L40S", 8, 9, 44.39, 142),
                                known("l4", "NVIDIA L4", 8, 9, 22.03, 58),
                                known("a10", "NVIDIA A10", 8, 6, 22.06, 72),
                                known("t4", "Tesla T4", 7, 5, 14.58, 40),
                                known("rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 23.64, 128)};
  return table;
}

gpu_model parse_gpu(std::string_view text) {
  std::string lower;
  for (unsigned char const c : text) lower += static_cast<char>(std::tolower(c));
  auto const found = std::ranges::find(known_gpus(), lower, &known_gpu::alias);
  if (found != known_gpus().end()) return found->model;
  if (text.find('=') != std::string_view::npos) return described(text);
  std::vector<std::string> names;
  for (auto const& gpu : known_gpus()) names.emplace_back(gpu.alias);
  refuse(text, "no GPU of this name is known" + did_you_mean(text, names));
}

} // namespace plateau
