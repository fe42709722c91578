// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/error.hpp"
#include "schemas/job.hpp"

#include <iostream>
#include <memory>

namespace plateau {

namespace {

struct validate_flags {
  std::string file;
  bool fields = false, schema = false;
};

void list_fields() {
  for (auto const& field : job_fields()) {
    auto const fallback = field.get(job{});
    std::cout << field.name << "  (default "
              << (field.name == "name" || fallback.is_null() ? "see below" : fallback.dump()) << ")\n    " << field.help
              << '\n';
  }
}

void check_run(run_folder const& run) {
  auto const info = read_run_info(run);
  auto const j = parse_job(info.job.dump(), run.run_json().string());
  std::size_t good = 0, expected = 0;
  std::string complaints;
  for (auto const& id : cases_of(j)) {
    for (auto const& rank : info.ranks) {
      ++expected;
      auto const file = run.raw_result(id, rank.rank);
      if (!std::filesystem::exists(file)) continue;
      try {
        read_raw_result(file);
        ++good;
      } catch (input_error const& e) {
        complaints += std::string("\n") + e.what();
      }
    }
  }
  if (!complaints.empty()) throw input_error(run.path.string() + ": damaged results:" + complaints);
  std::cout << run.path.string() << ": a run of " << info.ranks.size() << " ranks, " << good << " of " << expected
            << " results there, all whole\n";
}

exit_code validate(validate_flags const& flags) {
  if (flags.fields) list_fields();
  if (flags.schema) std::cout << job_schema().dump(2) << '\n';
  if (flags.file.empty()) {
    if (!flags.fields && !flags.schema)
      throw input_error("nothing to check; give a job file or a run folder, or --fields");
    return exit_code::good;
  }
  if (std::filesystem::is_directory(flags.file)) {
    check_run(open_run_folder(flags.file));
    return exit_code::good;
  }
  auto const j = parse_job(read_text(flags.file), flags.file);
  std::cout << flags.file << ": a good job of " << cases_of(j).size() << " cases\n";
  return exit_code::good;
}

} // namespace

run_subcommand add_validate(CLI::App& program) {
  auto flags = std::make_shared<validate_flags>();
  auto* command = program.add_subcommand("validate", "Check a job file or a run folder");
  command->footer("Examples:\n  plateau validate jobs/smoke_cpu.json\n  plateau validate --fields");
  command->add_option("FILE", flags->file, "a job file, a summary.json, or a run folder");
  command->add_flag("--fields", flags->fields, "list the fields of a job");
  command->add_flag("--schema", flags->schema, "print the JSON Schema of a job");
  return [flags] { return validate(*flags); };
}

} // namespace plateau
