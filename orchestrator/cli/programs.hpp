// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plateau {

/// The path of this very program, and how it was called.
std::filesystem::path this_program();
std::vector<std::string> this_command_line();

/// The worker to start: `asked` if not empty, else $PLATEAU_WORKER, else plateau-worker beside this program.
/// Throws input_error when it is not there.
std::filesystem::path worker_program(std::string const& asked);

/// Where the pretend GPU's libraries are: $PLATEAU_PRETEND_GPU, else pretend_gpu beside this program's folder. Throws
/// input_error when they are not there, as in a build without CUDA.
std::filesystem::path pretend_gpu_folder();

/// How many GPUs a process here could use: those in CUDA_VISIBLE_DEVICES, else the machine's device files. This program
/// never touches a GPU.
std::int64_t visible_gpus();

} // namespace plateau
