// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/job_fields.hpp"

#include <string>

namespace plateau {

void add_job_fields(CLI::App& command, std::vector<job_override>& typed) {
  for (auto const& field : job_fields())
    command
        .add_option_function<std::vector<std::string>>(
            flag_of(field.name),
            [&typed, name = std::string(field.name)](std::vector<std::string> const& texts) {
              for (auto const& text : texts) typed.push_back({name, text});
            },
            std::string(field.help))
        ->type_name("TEXT")
        ->expected(1, field.flag_adds ? 1'000 : 1)
        ->allow_extra_args(false)
        ->group("Fields of the job");
}

} // namespace plateau
