# The version is that of the package; a project may ask for it or an older one.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../version.py" _slipway_version REGEX "^VERSION = ")
string(REGEX REPLACE "^VERSION = \"([^\"]*)\".*" "\\1" PACKAGE_VERSION "${_slipway_version}")
if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
