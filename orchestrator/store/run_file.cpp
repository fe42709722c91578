// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/run_file.hpp"

#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/trailer.hpp"

#include <filesystem>
#include <string>
#include <system_error>

namespace plateau {

namespace {

std::filesystem::path partial(run_folder const& folder) { return folder.path / "run.h5.partial"; }

std::string run_text(run_info const& info) {
  auto run = encode(info);
  run.erase("job"); // has a text of its own
  return run.dump(2);
}

} // namespace

run_file::run_file(run_folder const& folder, run_info const& info, job const& run)
    : folder_(folder), info_(info), run_(run), file_(h5::create_file(partial(folder))) {
  auto const version = info.versions.find("plateau");
  h5::set_attribute(file_, "title", "plateau: latency and memory of " + run.workload + ", job " + run.name);
  h5::set_attribute(file_, "schema_name", run_file_format.name);
  h5::set_attribute(file_, "schema_version",
                    std::to_string(run_file_format.major) + "." + std::to_string(run_file_format.minor));
  h5::set_attribute(file_, "run_id", info.run_id);
  h5::set_attribute(file_, "started", info.started);
  if (info.rehearsed) h5::set_attribute(file_, "rehearsed", *info.rehearsed);
  h5::set_attribute(file_, "software", "plateau" + (version == info.versions.end() ? "" : " " + version->second));
  h5::write_text(file_, "job", info.job.dump(2), "the job as it was run, JSON");
  h5::write_text(file_, "run", run_text(info), "ranks, devices and versions, JSON");
}

run_file::~run_file() {
  if (finished_) return;
  file_ = {};
  std::error_code ignored;
  std::filesystem::remove(partial(folder_), ignored);
}

void run_file::finish(bool complete) {
  h5::set_attribute(file_, "complete", std::int64_t{complete});
  file_.close();
  auto const size = std::filesystem::file_size(partial(folder_));
  append(partial(folder_), trailer_of(run_file_trailer, checksum_of_file(partial(folder_), size), size));
  publish(partial(folder_), folder_.run_h5());
  finished_ = true;
}

} // namespace plateau
