// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/programs.hpp"

#include "schemas/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace plateau {

std::filesystem::path this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::vector<std::string> this_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::filesystem::path worker_program(std::string const& asked) {
  auto const* variable = std::getenv("PLATEAU_WORKER");
  std::filesystem::path program = !asked.empty()        ? std::filesystem::path(asked)
                                  : variable != nullptr ? std::filesystem::path(variable)
                                                        : this_program().parent_path() / "plateau-worker";
  if (access(program.c_str(), X_OK) != 0)
    throw input_error("there is no worker at " + program.string() +
                      "; build it (script/setup), or say where it is in PLATEAU_WORKER");
  return std::filesystem::absolute(program);
}

std::filesystem::path pretend_gpu_folder() {
  auto const* variable = std::getenv("PLATEAU_PRETEND_GPU");
  auto const folder = variable != nullptr ? std::filesystem::path(variable)
                                          : this_program().parent_path().parent_path() / "pretend_gpu";
  if (access((folder / "libpretend_cuda.so").c_str(), R_OK) != 0)
    throw input_error("the pretend GPU's libraries are not in " + folder.string() +
                      "; build them (script/setup, with a PyTorch that has CUDA), or say where they are in "
                      "PLATEAU_PRETEND_GPU");
  return std::filesystem::absolute(folder);
}

std::int64_t visible_gpus() {
  if (auto const* list = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::string const text(list);
    return text.empty() ? 0 : 1 + std::ranges::count(text, ',');
  }
  std::error_code ignored;
  std::int64_t found = 0;
  for (auto const& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    auto const name = entry.path().filename().string();
    found += name.starts_with("nvidia") && name.size() > 6 &&
             std::all_of(name.begin() + 6, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return found;
}

} // namespace plateau
