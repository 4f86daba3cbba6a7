#pragma once
// How the process deals with memory that it has freed.

namespace kwatt {

// Keeps up to some 32 MiB of freed memory instead of giving it back after every large request:
// giving pages back and faulting them in again costs a server more than the work of the request.
// Call once, before threads are started. Does nothing with another C library than glibc.
void keep_freed_memory();

}  // namespace kwatt
