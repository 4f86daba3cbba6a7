#pragma once
// How many members an aggregate has: the most empty braces it can be initialized with. It lets a
// table prove at compile time that no member was forgotten. (boost::pfr would do, but GCC 12
// crashes on it.)
#include <cstddef>

namespace kwatt::api::describe {

#define KWATT_BRACES_8 \
  {}, {}, {}, {}, {}, {}, {}, {}
#define KWATT_BRACES_16 KWATT_BRACES_8, KWATT_BRACES_8
#define KWATT_BRACES_24 KWATT_BRACES_16, KWATT_BRACES_8
#define KWATT_TRY_EIGHT(add, ...)                                            \
  if constexpr (requires { T{__VA_ARGS__{}, {}, {}, {}, {}, {}, {}, {}}; })  \
    return add + 8;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}, {}, {}, {}, {}, {}}; }) \
    return add + 7;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}, {}, {}, {}, {}}; })     \
    return add + 6;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}, {}, {}, {}}; })         \
    return add + 5;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}, {}, {}}; })             \
    return add + 4;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}, {}}; })                 \
    return add + 3;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}, {}}; })                     \
    return add + 2;                                                          \
  else if constexpr (requires { T{__VA_ARGS__{}}; })                         \
  return add + 1

// Up to 32.
template <class T>
constexpr std::size_t member_count() {
  KWATT_TRY_EIGHT(24, KWATT_BRACES_24, );
  else KWATT_TRY_EIGHT(16, KWATT_BRACES_16, );
  else KWATT_TRY_EIGHT(8, KWATT_BRACES_8, );
  else KWATT_TRY_EIGHT(0, );
  else return 0;
}

#undef KWATT_TRY_EIGHT
#undef KWATT_BRACES_24
#undef KWATT_BRACES_16
#undef KWATT_BRACES_8

}  // namespace kwatt::api::describe
