# Build rules shared by all folders: language level, warnings, linker, sanitizers, and the three
# functions with which a folder declares itself.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

option(KWATT_BENCH "Build the bench targets" OFF)
set(KWATT_SANITIZE "" CACHE STRING "Value of -fsanitize=, for example address,undefined")

find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS url)
find_package(RapidJSON REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(doctest REQUIRED)

add_library(kwatt_flags INTERFACE)
target_include_directories(kwatt_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_include_directories(kwatt_flags SYSTEM INTERFACE ${RAPIDJSON_INCLUDE_DIRS})
target_compile_options(kwatt_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
# GCC 12 sees overflows in std::string once it inlines (GCC bugs 105329, 105651): false alarms, and
# only when optimizing. The debug build keeps the warnings.
target_compile_options(kwatt_flags INTERFACE
  "$<$<NOT:$<CONFIG:Debug>>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>")
target_compile_definitions(kwatt_flags INTERFACE KWATT_VERSION="${PROJECT_VERSION}")
if(KWATT_SANITIZE)
  target_compile_options(kwatt_flags INTERFACE
    -fsanitize=${KWATT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kwatt_flags INTERFACE -fsanitize=${KWATT_SANITIZE})
  target_compile_definitions(kwatt_flags INTERFACE _GLIBCXX_ASSERTIONS)
  # Asio keeps the memory of coroutine frames and handlers for the next ones: what is used after its
  # end would go unseen.
  target_compile_definitions(kwatt_flags INTERFACE
    BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=0 BOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING)
  if(KWATT_SANITIZE MATCHES "thread")
    # GCC 12 warns that TSan does not understand the fences in Asio's headers.
    target_compile_options(kwatt_flags INTERFACE -Wno-tsan)
  endif()
endif()
find_program(KWATT_MOLD mold)
if(KWATT_MOLD)
  target_link_options(kwatt_flags INTERFACE -fuse-ld=mold)
endif()

# ccache and precompiled headers work together only with these (ccache manual, "Precompiled headers").
set(CMAKE_PCH_INSTANTIATE_TEMPLATES OFF)
add_compile_options(-fpch-preprocess)

# kwatt_folder(planner DEPS api models LIBS fmt::fmt [ASIO]): the static library of one folder, from
# all its .cpp files. ASIO: the folder speaks coroutines, so it shares the precompiled Asio headers.
function(kwatt_folder name)
  cmake_parse_arguments(arg "ASIO" "" "DEPS;LIBS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(excluded ${arg_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  list(TRANSFORM arg_DEPS PREPEND kwatt_)
  add_library(kwatt_${name} STATIC ${sources})
  target_link_libraries(kwatt_${name} PUBLIC kwatt_flags ${arg_DEPS} ${arg_LIBS})
  if(arg_ASIO)
    kwatt_asio(kwatt_${name})
  endif()
endfunction()

# Precompile the Asio coroutine headers for a target: they cost two seconds a file otherwise.
function(kwatt_asio target)
  target_precompile_headers(${target} PRIVATE
    <string> <vector> <map> <memory> <optional> <functional> <chrono>
    <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/detached.hpp>
    <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp>)
endfunction()

# kwatt_program(kwatt-agent MAIN main.cpp DEPS agent): an executable named as users type it.
function(kwatt_program name)
  cmake_parse_arguments(arg "ASIO" "MAIN" "DEPS;LIBS" ${ARGN})
  list(TRANSFORM arg_DEPS PREPEND kwatt_)
  add_executable(${name} ${arg_MAIN})
  target_link_libraries(${name} PRIVATE kwatt_flags ${arg_DEPS} ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# kwatt_test(planner DEPS planner [LABEL unit]): one doctest executable per folder from test/<folder>/.
function(kwatt_test name)
  cmake_parse_arguments(arg "ASIO" "LABEL" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM arg_DEPS PREPEND kwatt_)
  add_executable(test_${name} ${sources} ${CMAKE_SOURCE_DIR}/test/support/doctest_main.cpp)
  target_link_libraries(test_${name} PRIVATE kwatt_flags ${arg_DEPS} ${arg_LIBS} doctest::doctest)
  # For this one file alone: with its path in their command lines, the others would be compiled anew
  # in each clone, whatever ccache holds.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/test/support/doctest_main.cpp PROPERTIES
    COMPILE_DEFINITIONS KWATT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SKIP_PRECOMPILE_HEADERS ON)
  if(arg_ASIO)
    kwatt_asio(test_${name})
  endif()
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 300)
endfunction()
