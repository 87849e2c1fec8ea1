# What the core stands on, found on the system. See docs/decisions/0002-libraries.md.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)

# The static, position-independent archives of gRPC and what it needs. Debian's pkg-config closure
# of the unsecure pair is incomplete, so they are named here.
find_path(GRPC_INCLUDE grpcpp/generic/async_generic_service.h REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
set(grpc_archives "")
foreach(name grpc++_unsecure grpc_unsecure gpr address_sorting upb cares)
  find_library(GRPC_ARCHIVE_${name} lib${name}.a REQUIRED)
  list(APPEND grpc_archives ${GRPC_ARCHIVE_${name}})
endforeach()
find_library(ZLIB_ARCHIVE libz.a REQUIRED)
find_library(SNAPPY_ARCHIVE libsnappy.a REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)

add_library(gear_reverb_zlib INTERFACE)
target_link_libraries(gear_reverb_zlib INTERFACE ${ZLIB_ARCHIVE})
add_library(gear_reverb_snappy INTERFACE)
target_link_libraries(gear_reverb_snappy INTERFACE ${SNAPPY_ARCHIVE})
target_include_directories(gear_reverb_snappy SYSTEM INTERFACE ${PROTOZERO_INCLUDE})

add_library(gear_reverb_grpc INTERFACE)
target_include_directories(gear_reverb_grpc SYSTEM INTERFACE ${GRPC_INCLUDE})
target_link_libraries(gear_reverb_grpc INTERFACE
  -Wl,--start-group ${grpc_archives} -Wl,--end-group ${ZLIB_ARCHIVE} ${RE2_LIBRARY}
  absl::status absl::statusor absl::strings absl::synchronization absl::time absl::cord
  absl::random_random absl::random_distributions absl::hash absl::flat_hash_map absl::flat_hash_set
  absl::optional absl::str_format absl::memory absl::bind_front Threads::Threads dl)
