# The Python extension `_native`, once per CPython, all over the same layer libraries: another
# CPython costs only the bindings. setup.py asks for one by writing
# ${CMAKE_BINARY_DIR}/python/<ABI>/python.cmake, which sets GEAR_REVERB_PYTHON_INCLUDES; the
# target is then _native.<ABI>. Only the targets that are asked for are built.
#
# The link hides everything but PyInit_*, so that the gRPC inside lives beside any other copy in
# the process. See docs/decisions/0003-static-hidden-extension.md.
file(GLOB extension_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/native/bindings/*.cc)
file(GLOB extension_configs CONFIGURE_DEPENDS ${CMAKE_BINARY_DIR}/python/*/python.cmake)

function(gear_reverb_extension target directory cuda version_map)
  add_library(${target} MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${bindings}>)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME _native SUFFIX .${abi}.so
    LIBRARY_OUTPUT_DIRECTORY ${directory}
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${version_map})
  target_link_libraries(${target} PRIVATE gr_client gr_server gr_dm_checkpoint ${cuda})
  target_link_options(${target} PRIVATE
    -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--as-needed -Wl,-z,nodynamic-undefined-weak
    -Wl,--version-script=${version_map})
endfunction()

foreach(config IN LISTS extension_configs)
  get_filename_component(directory ${config} DIRECTORY)
  get_filename_component(abi ${directory} NAME)
  include(${config})

  # The bindings once, for both links.
  set(bindings gr_bindings.${abi})
  add_library(${bindings} OBJECT EXCLUDE_FROM_ALL ${extension_sources})
  target_include_directories(${bindings} SYSTEM PRIVATE ${GEAR_REVERB_PYTHON_INCLUDES})
  target_compile_definitions(${bindings} PRIVATE GEAR_REVERB_VERSION="${GEAR_REVERB_VERSION}")
  target_link_libraries(${bindings} PRIVATE gr_client gr_server gr_dm_checkpoint gr_cuda)

  gear_reverb_extension(_native.${abi} ${directory} gr_cuda
                        ${PROJECT_SOURCE_DIR}/native/version.map)
  target_link_options(_native.${abi} PRIVATE -Wl,--exclude-libs,ALL)
  if(TARGET gr_emulated_cuda)  # For tests of all that lies above the GPU, Python included.
    gear_reverb_extension(_native_emulated.${abi} ${directory}/emulated gr_emulated_cuda
                          ${PROJECT_SOURCE_DIR}/native/emulation/version.map)
  endif()
endforeach()
