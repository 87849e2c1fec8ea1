# The Python extension `_native`, once per CPython, all over the same layer libraries: another
# CPython costs only the bindings. setup.py asks for one by writing
# ${CMAKE_BINARY_DIR}/python/<ABI>/python.cmake, which sets GEAR_REVERB_PYTHON_INCLUDES; the
# target is then _native.<ABI>. Only the targets that are asked for are built.
#
# The link hides everything but PyInit_*, so that the gRPC inside lives beside any other copy in
# the process. See docs/decisions/0003-static-hidden-extension.md.
file(GLOB extension_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/native/bindings/*.cc)
file(GLOB extension_configs CONFIGURE_DEPENDS ${CMAKE_BINARY_DIR}/python/*/python.cmake)

foreach(config IN LISTS extension_configs)
  get_filename_component(directory ${config} DIRECTORY)
  get_filename_component(abi ${directory} NAME)
  include(${config})

  set(target _native.${abi})
  add_library(${target} MODULE EXCLUDE_FROM_ALL ${extension_sources})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME _native SUFFIX .${abi}.so
    LIBRARY_OUTPUT_DIRECTORY ${directory}
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/native/version.map)
  target_include_directories(${target} SYSTEM PRIVATE ${GEAR_REVERB_PYTHON_INCLUDES})
  target_compile_definitions(${target} PRIVATE GEAR_REVERB_VERSION="${GEAR_REVERB_VERSION}")
  target_link_libraries(${target} PRIVATE gr_client gr_server gr_dm_checkpoint gr_cuda)
  target_link_options(${target} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--as-needed
    -Wl,-z,nodynamic-undefined-weak
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/native/version.map)
endforeach()
