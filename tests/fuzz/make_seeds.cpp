// SPDX-License-Identifier: Apache-2.0
// make_seeds DIR: good inputs for each fuzz target, DIR/job/... and so on, for the fuzzer to start from.
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "schemas/protocol.hpp"
#include "tests/support/synthetic_run.hpp"

namespace plateau {

namespace {

namespace fs = std::filesystem;

using content = std::vector<std::uint8_t>;

class seeds {
public:
  explicit seeds(fs::path folder) : folder_(std::move(folder)) {}

  void add(char const* target, content const& seed) {
    fs::create_directories(folder_ / target);
    write_durably(folder_ / target / ("seed-" + std::to_string(++count_)), seed);
  }
  void add(char const* target, std::string const& seed) { add(target, content(seed.begin(), seed.end())); }

private:
  fs::path folder_;
  int count_ = 0;
};

void add_jobs(seeds& to) {
  to.add("job", to_json(job{}).dump());
  to.add("job", to_json(synthetic_job()).dump());
  to.add("job", std::string(R"({"hidden": 0, "modes": ["arean"], "soak": {"windows": -1}, "env": {"A": "b"}})"));
  std::string typed = "{}";
  for (auto const& field : job_fields())
    typed += '\x1e' + std::string(field.name) + "=" + field.get(synthetic_job()).dump();
  to.add("job", typed);
  typed = "{}";
  for (auto const* one : {"modes=eager,arena", "concurrency_levels=1,2", "env=A=1,B=2,3", "soak=windows=4,hello=5"})
    typed += std::string("\x1e") + one;
  to.add("job", typed);
}

content after(std::uint8_t first, content rest) {
  rest.insert(rest.begin(), first);
  return rest;
}

void add_frames(seeds& to, case_result const& result) {
  std::vector<content> const frames{
      protocol::to_frame(protocol::hello{protocol::version, "a run", 1, 1, 2, synthetic_job()}),
      protocol::to_frame(protocol::prepare{{"eager", 2, 0}}),
      protocol::to_frame(protocol::start{}),
      protocol::to_frame(protocol::stop{}),
      protocol::to_frame(device_info{"cpu", "a processor", {}, {}, {}, {}, 1 << 30, 0, "0-3", 4, {{"a", "b"}}}),
      protocol::to_frame(protocol::ready{}),
      protocol::to_frame(memory_point{}),
      protocol::to_frame(result),
      protocol::to_frame(protocol::failure{case_status::crashed, "a reason"})};
  content stream;
  for (auto const& frame : frames) {
    to.add("frames", after(0, {frame.begin() + 4, frame.end()}));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  to.add("frames", after(100, stream));
}

void add_run_files(seeds& to, run_folder const& folder) {
  auto file = read_file(folder.run_h5());
  file.erase(file.begin() + 64, file.end() - 64); // its ends are what is read
  to.add("run_file", after(0, file));
  file.resize(64);
  to.add("run_file", after(1, file));
  for (std::uint8_t edit = 0; edit < 8; ++edit)
    to.add("run_file", content{2, 7, edit, 1, 2, 3, 4, 5, 40, edit, 9, 9, 9});
}

} // namespace

} // namespace plateau

int main(int, char** arguments) {
  using namespace plateau;
  seeds to(arguments[1]);
  auto run = synthetic_job();
  run.requests_per_worker = 3;
  run.modes = {"eager"};
  auto const info = synthetic_info(run, 2);
  case_id const id{"eager", 2, 0};
  auto const passed = synthetic_result(info, run, id, 1);
  auto failed = failed_result(info, id, 0, case_status::timed_out, "no sign of life");
  failed.soak_so_far = passed.measured->soak;

  add_jobs(to);
  add_frames(to, passed);
  to.add("raw_result", encode_raw_result(passed));
  to.add("raw_result", encode_raw_result(failed));
  scratch_folder const scratch;
  auto const folder = synthetic_folder(scratch.path / "run", run, 2);
  to.add("raw_result", read_file(folder.raw_result(id, 1)));
  assemble(folder);
  add_run_files(to, folder);
}
