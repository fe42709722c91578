// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/agreement.hpp"

#include "schemas/json.hpp"

#include <exception>

namespace plateau {

std::string decided_by_rank_0(communicator& ranks, std::function<std::string()> const& decide, char const* what) {
  json decision;
  if (ranks.rank() == 0) {
    try {
      decision["text"] = decide();
    } catch (std::exception const& e) {
      decision["refused"] = e.what();
    }
  }
  auto const agreed = json::parse(ranks.broadcast(decision.dump(-1, ' ', false, json::error_handler_t::replace), what));
  if (agreed.contains("refused")) throw refused(agreed["refused"].get<std::string>());
  return agreed["text"].get<std::string>();
}

} // namespace plateau
