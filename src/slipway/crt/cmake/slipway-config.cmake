# find_package(slipway CONFIG REQUIRED) gives slipway::runtime: the headers of C and C++, and the runtime,
# compiled with the project and for what the project is compiled for.  With SLIPWAY_LIB_DIR, the folder that
# `slipway runtime --libs` prints, it is the library that Python loads, whose table of functions is one with
# Python's.  `slipway runtime --cmakedir` prints where this file is.

get_filename_component(_slipway_crt "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
get_property(_slipway_languages GLOBAL PROPERTY ENABLED_LANGUAGES)

if(NOT TARGET slipway::runtime AND SLIPWAY_LIB_DIR)
  if(EXISTS "${SLIPWAY_LIB_DIR}/libslipway_runtime.so")
    add_library(slipway::runtime SHARED IMPORTED GLOBAL)
    set_target_properties(slipway::runtime PROPERTIES
      IMPORTED_LOCATION "${SLIPWAY_LIB_DIR}/libslipway_runtime.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_slipway_crt}/include")
  else()
    set(slipway_FOUND FALSE)
    set(slipway_NOT_FOUND_MESSAGE
      "SLIPWAY_LIB_DIR is ${SLIPWAY_LIB_DIR}, where no libslipway_runtime.so is: give the folder of -L that `slipway runtime --libs` prints.")
  endif()
elseif(NOT TARGET slipway::runtime AND NOT "C" IN_LIST _slipway_languages)
  set(slipway_FOUND FALSE)
  set(slipway_NOT_FOUND_MESSAGE
    "slipway::runtime is compiled from C: write project(... LANGUAGES C CXX) before find_package, or set SLIPWAY_LIB_DIR.")
elseif(NOT TARGET slipway::runtime)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  file(GLOB_RECURSE _slipway_sources CONFIGURE_DEPENDS
    "${_slipway_crt}/src/*.c" "${_slipway_crt}/posix/*.c" "${_slipway_crt}/classic/*.c")
  add_library(slipway_runtime STATIC EXCLUDE_FROM_ALL ${_slipway_sources})
  set_target_properties(slipway_runtime PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(slipway_runtime PRIVATE _GNU_SOURCE=)
  target_include_directories(slipway_runtime SYSTEM INTERFACE "${_slipway_crt}/include")
  target_include_directories(slipway_runtime PRIVATE "${_slipway_crt}/include")
  target_link_libraries(slipway_runtime PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  add_library(slipway::runtime ALIAS slipway_runtime)
endif()
