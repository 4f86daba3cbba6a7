#include "base/memory.hpp"

#include <cstdlib>  // defines __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace kwatt {

void keep_freed_memory() {
#ifdef __GLIBC__
  // The largest that glibc takes for either; setting one of them ends its own adapting
  // (mallopt(3)).
  constexpr int kBytes = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
#endif
}

}  // namespace kwatt
