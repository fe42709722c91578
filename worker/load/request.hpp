// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plateau {

/// One stream thread's request, made anew each time it is submitted. What the load engine drives; it knows no Torch.
/// All three are called by the stream thread that owns the request, in this order, again and again.
class request {
public:
  virtual ~request() = default;
  virtual void submit() = 0; ///< starts one forward pass
  virtual void wait() = 0;   ///< returns when its result is ready
  virtual void drop() = 0;   ///< lets go of the result; after the clock was read
};

} // namespace plateau
