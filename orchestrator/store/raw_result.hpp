// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/run_folder.hpp"
#include "schemas/case_result.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace plateau {

/// A case result as CBOR: the bytes that are stored and that the gather carries.
std::vector<std::uint8_t> encode_raw_result(case_result const& result);

/// Makes a rank's result of a case durable as folder.raw_result(id, rank, attempt): the CBOR bytes and a trailer of 16
/// bytes named "PLRR" (trailer.hpp). An older one of that name is replaced. Throws std::system_error.
void write_raw_result(run_folder const& folder, case_id const& id, std::int64_t rank,
                      std::span<std::uint8_t const> cbor, std::int64_t attempt = 1);

/// Reads the bytes of a whole file that write_raw_result wrote. Throws format_error, with one sentence, when they are
/// truncated, damaged or of a newer major version.
case_result decode_raw_result(std::span<std::uint8_t const> file);

/// Reads what write_raw_result wrote. Throws format_error, with the path and one sentence, when the file is
/// truncated, damaged, of a newer major version, or holds another case, rank or attempt than its name says;
/// input_error when it cannot be read.
case_result read_raw_result(std::filesystem::path const& path);

/// The same for a result that is also refused when it is not one of this run. `run` is info's job.
case_result read_result_of_run(std::filesystem::path const& path, run_info const& info, job const& run);

} // namespace plateau
