// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/progress.hpp"

namespace plateau {

/// Serves one rank: answers its commands on `socket` (schemas/protocol.hpp) until it says stop or closes. A case that
/// fails is answered with a failure, and the next one is served; one that breaks the device ends the process. Returns
/// the process's exit code: 0, or 1 when it could not go on (no device, a damaged frame), which the rank was told if it
/// still listened.
int serve(int socket, progress& shared);

} // namespace plateau
