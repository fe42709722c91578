// SPDX-License-Identifier: Apache-2.0
#include "worker/fabric/nccl_library.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace plateau {

namespace {

constexpr int oldest_version = NCCL_VERSION(2, 14, 0);

// As NCCL_VERSION of nccl.h packs them, since 2.9.
std::string version_text(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

// A function of the library, as the type of its place in the table has it.
template <class Function>
void find(void* library, char const* name, Function& place, std::string const& file) {
  place = reinterpret_cast<Function>(dlsym(library, name));
  if (place == nullptr)
    throw fabric_error(fabric_step::loading, file + " has no " + name + ", so it is no NCCL of version 2.14 or newer");
}

std::string file_that_has(void const* function) {
  Dl_info where{};
  return dladdr(function, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : "an unknown file";
}

void check_version(int code, std::string const& file) {
  if (code >= oldest_version && code / 10000 == NCCL_MAJOR) return;
  throw fabric_error(fabric_step::loading, file + " is NCCL " + version_text(code) + ", and this worker, built with " +
                                               version_text(NCCL_VERSION_CODE) + ", needs 2.14 or a newer 2.x");
}

int value_of_digit(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  auto const at = digits.find(c);
  if (at == digits.npos) throw fabric_error(fabric_step::loading, "what came as NCCL's unique id is none");
  return static_cast<int>(at);
}

} // namespace

nccl_library load_nccl(std::string const& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    auto const* const why = dlerror();
    throw fabric_error(fabric_step::loading, "NCCL cannot be loaded: " + std::string(why != nullptr ? why : name));
  }
  nccl_library n;
  n.file = name;
  find(library, "ncclGetVersion", n.get_version, n.file);
  n.file = file_that_has(reinterpret_cast<void const*>(n.get_version));
  int code = 0;
  n.get_version(&code);
  check_version(code, n.file);
  n.version = version_text(code);
  find(library, "ncclGetUniqueId", n.get_unique_id, n.file);
  find(library, "ncclCommInitRankConfig", n.comm_init_rank_config, n.file);
  find(library, "ncclCommGetAsyncError", n.comm_get_async_error, n.file);
  find(library, "ncclAllReduce", n.all_reduce, n.file);
  find(library, "ncclCommFinalize", n.comm_finalize, n.file);
  find(library, "ncclCommDestroy", n.comm_destroy, n.file);
  find(library, "ncclCommAbort", n.comm_abort, n.file);
  find(library, "ncclGetErrorString", n.get_error_string, n.file);
  find(library, "ncclGetLastError", n.get_last_error, n.file);
  return n;
}

std::string to_text(ncclUniqueId const& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (char const c : id.internal) {
    auto const byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

ncclUniqueId unique_id_of(std::string const& text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof id.internal) value_of_digit('\0'); // throws
  for (std::size_t i = 0; i < sizeof id.internal; ++i)
    id.internal[i] = static_cast<char>(16 * value_of_digit(text[2 * i]) + value_of_digit(text[2 * i + 1]));
  return id;
}

std::map<std::string, std::string> nccl_settings() {
  std::map<std::string, std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view const text = *variable;
    auto const equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != text.npos)
      settings.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  std::string const home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  std::error_code unreadable;
  for (auto const& file : {std::string("/etc/nccl.conf"), home + "/.nccl.conf"})
    if (std::filesystem::exists(file, unreadable)) settings.emplace(file, "is read by NCCL, too");
  return settings;
}

nccl_info info_of(nccl_library const& nccl, bool with_unique_id) {
  nccl_info info{nccl.version, nccl.file, {}, nccl_settings()};
  if (!with_unique_id) return info;
  ncclUniqueId id{};
  if (auto const result = nccl.get_unique_id(&id); result != ncclSuccess)
    throw fabric_error(fabric_step::initialising,
                       std::string("NCCL finds no interface to listen on for the other ranks: ncclGetUniqueId: ") +
                           nccl.get_error_string(result) + ": " + nccl.get_last_error(nullptr));
  info.unique_id = to_text(id);
  return info;
}

} // namespace plateau
