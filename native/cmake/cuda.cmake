# The CUDA compiler, if there is one: GEAR_REVERB_HAS_CUDA, and the library gear_reverb_cudart, which
# is the runtime, linked statically, so that the extension loads where there is no driver.
#
# Builds for sanitizers and fuzzers have no kernels: they cannot look into them.
set(GEAR_REVERB_CUDA AUTO CACHE STRING
    "Compile the CUDA kernels: AUTO (where there is an nvcc), ON (or fail) or OFF")
set_property(CACHE GEAR_REVERB_CUDA PROPERTY STRINGS AUTO ON OFF)

# What scripts/install_nvcc.sh installs comes last.
file(GLOB packaged_nvcc ${PROJECT_SOURCE_DIR}/.venv-cuda/lib/python3*/site-packages/nvidia/cu*/bin)
find_program(GEAR_REVERB_NVCC nvcc
             HINTS $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin ${packaged_nvcc})

set(GEAR_REVERB_HAS_CUDA OFF)
add_library(gear_reverb_cudart INTERFACE)
if(GEAR_REVERB_CUDA STREQUAL "OFF")
  message(STATUS "CUDA kernels: left out (GEAR_REVERB_CUDA=OFF)")
elseif(GEAR_REVERB_SANITIZE OR GEAR_REVERB_FUZZERS)
  message(STATUS "CUDA kernels: left out of a build with sanitizers")
elseif(NOT GEAR_REVERB_NVCC)
  if(NOT GEAR_REVERB_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "GEAR_REVERB_CUDA=${GEAR_REVERB_CUDA}, but there is no nvcc")
  endif()
  message(STATUS "CUDA kernels: left out, since there is no nvcc; "
                 "scripts/install_nvcc.sh installs one. Everything else is built")
else()
  # Machine code for each of these that the compiler knows, and PTX of the newest for what comes after it.
  execute_process(COMMAND ${GEAR_REVERB_NVCC} --list-gpu-arch OUTPUT_VARIABLE known_architectures)
  set(newest 80)
  set(CMAKE_CUDA_ARCHITECTURES)
  foreach(architecture 90 100)
    if(known_architectures MATCHES "compute_${architecture}\n")
      list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest}-real)
      set(newest ${architecture})
    endif()
  endforeach()
  list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest})
  set(CMAKE_CUDA_COMPILER ${GEAR_REVERB_NVCC})
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(GEAR_REVERB_HAS_CUDA ON)
  message(STATUS "CUDA kernels: built by ${GEAR_REVERB_NVCC}, ${CMAKE_CUDA_COMPILER_VERSION}")
  target_link_libraries(gear_reverb_cudart INTERFACE CUDA::cudart_static)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-fvisibility=hidden,-Wall,-ffp-contract=off>")
endif()
