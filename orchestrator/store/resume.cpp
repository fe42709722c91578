// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/resume.hpp"

#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "schemas/error.hpp"

#include <algorithm>

namespace plateau {

namespace {

void refuse_another_job(earlier_run const& run, resume_request const& request) {
  auto const& source = request.job_file;
  auto asked = source ? parse_job(read_text(*source), source->string(), request.overrides)
                      : parse_job(run.info.job.dump(), run.folder.run_json().string(), request.overrides);
  asked = resolved_for(asked, asked.device == "auto" ? run.run.device : asked.device);
  asked.name = run.run.name;
  auto const found = differences(run.run, asked);
  if (found.empty()) return;
  throw input_error(run.folder.path.string() + ": is a run of another job, and a run goes on with its own; leave the " +
                    "job and its flags out, or start a new run:\n" + told(found, "in the run", "now"));
}

} // namespace

earlier_run open_to_resume(resume_request const& request) {
  earlier_run run{open_run_folder(request.folder), {}, {}};
  run.folder.path = std::filesystem::canonical(run.folder.path); // `latest` may soon point to another run
  auto const where = run.folder.path.string();
  run.info = read_run_info(run.folder);
  if (run.info.merged_from)
    throw input_error(where + ": was merged from several runs and cannot be resumed; resume those, and merge again");
  if (run.info.rehearsed)
    throw input_error(where + ": is a rehearsal and cannot be resumed; rehearse again, it takes seconds");
  run.run = parse_job(run.info.job.dump(), run.folder.run_json().string());
  refuse_another_job(run, request);
  auto const world = std::ssize(run.info.ranks);
  if (request.ranks && *request.ranks != world)
    throw input_error(where + ": has " + std::to_string(world) + (world == 1 ? " rank" : " ranks") + ", and " +
                      std::to_string(*request.ranks) + " are there now; a run goes on with as many as it had");
  return run;
}

std::vector<kept_case> cases_by_name(earlier_run const& run) {
  std::vector<kept_case> seem;
  auto const world = std::ssize(run.info.ranks);
  for (auto const& id : cases_of(run.run))
    if (auto const counted = attempt_that_counts(run.folder, id, world); counted.ranks == world)
      seem.push_back({id, counted.attempt});
  return seem;
}

bool is_final(earlier_run const& run, kept_case const& seems, std::int64_t rank, bool retry_failed) try {
  auto const result = read_result_of_run(run.folder.raw_result(seems.id, rank, seems.attempt), run.info, run.run);
  return !retry_failed || result.status == case_status::passed;
} catch (input_error const&) {
  return false;
}

resume_plan plan_of(job const& run, std::span<kept_case const> seem, std::vector<bool> const& stands) {
  resume_plan plan;
  for (auto const& id : cases_of(run)) {
    auto const found = std::ranges::find(seem, id, &kept_case::id);
    if (found != seem.end() && stands[static_cast<std::size_t>(found - seem.begin())])
      plan.kept.push_back(*found);
    else
      plan.to_run.push_back(id);
  }
  return plan;
}

resume_plan plan_resume(earlier_run const& run, bool retry_failed) {
  auto const seem = cases_by_name(run);
  std::vector<bool> stands;
  for (auto const& each : seem) {
    bool all = true;
    for (std::int64_t rank = 0; all && rank < std::ssize(run.info.ranks); ++rank)
      all = is_final(run, each, rank, retry_failed);
    stands.push_back(all);
  }
  return plan_of(run.run, seem, stands);
}

std::string how_to_go_on(std::filesystem::path const& folder, bool rehearsal) {
  return rehearsal ? "a rehearsal cannot be resumed; rehearse again, it takes seconds"
                   : "to go on: plateau run --resume " + folder.string();
}

void judge_by(earlier_run const& run, gates const& asked) {
  auto info = run.info;
  info.fail_on = asked;
  write_run_info(run.folder, info);
}

void retract_results(run_folder const& folder) {
  for (auto const& file : {folder.outcome_json(), folder.summary_json(), folder.run_h5()})
    std::filesystem::remove(file);
}

} // namespace plateau
