// What client and server say to each other over the Unix socket. Both are of one build of this
// library or of different ones: kVersion must agree. Numbers are little-endian, without padding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gear_reverb::shm {

static_assert(std::endian::native == std::endian::little, "the encodings are little-endian");

inline constexpr uint64_t kMagic = 0x3142565245523147;
inline constexpr uint32_t kVersion = 3;

// What a connection is for.
enum class Role : uint32_t { kInsert = 1, kControl = 2 };

enum class MessageType : uint32_t {
  kHello = 1,     // Client, first: magic, version, role, token. An insert stream's ring as a fd.
  kWelcome = 2,   // Server, first: its features, or nothing for none of them.
  kEnd = 3,       // Server, last: a status.
  kDoorbell = 4,  // Either: look at the ring. Empty.

  kConfirmed = 5,  // Server: runs of keys of inserted items.

  kDraw = 6,      // Client: a request for samples. kDrawn or kFailed answer it.
  kDrawn = 7,     // Server: items, as places in segments; a lease.
  kFailed = 8,    // Server: a status, in place of kDrawn. The connection goes on.
  kRelease = 9,   // Client: leases that are no longer needed.
  kSegment = 10,  // Server: a segment's id, and its memory as a read-only fd.
  kGone = 11,     // Server: ids of segments that are no more.
  kRefused = 12,  // Server, last: a text. Memory cannot be shared; another way should be taken.

  kCancel = 15,  // Client: no request is to be served any more. Leases stay.

  kMutate = 13,   // Client: new priorities and deletions.
  kMutated = 14,  // Server: a status.

  kKeepMemory = 16,  // Client, to a server of kKeepsMemory: no page of a segment is to go back to
                     // the system from now on, nor a segment to go. A device may then read them.
  kMemoryKept = 17,  // Server: a status. It may refuse.
};

// Features: bits of what is not in every server of kVersion.
inline constexpr uint32_t kKeepsMemory = 1;

struct FrameHeader {
  uint32_t type;
  uint32_t bytes;  // Of the body, which follows.
};

// Bodies are no longer than this. A client sends larger requests another way.
inline constexpr size_t kMaxBodyBytes = size_t{256} << 20;

// Of the names of sockets: this and 32 hexadecimal digits.
inline constexpr char kSocketPrefix[] = "gear_reverb/";
inline constexpr size_t kTokenBytes = 16;

}  // namespace gear_reverb::shm
