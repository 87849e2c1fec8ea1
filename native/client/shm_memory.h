// A server's segments, as this process has mapped them, for a device to register.
#pragma once

#include <memory>

#include "native/client/shm_control.h"
#include "native/device/segment_source.h"

namespace gear_reverb::client {

// Keep asks the server, over a connection of its own, to give back no more memory. What was once
// told as a segment stays mapped for as long as this is there.
std::shared_ptr<device::SegmentSource> NewShmMemory(std::shared_ptr<ShmPeer> peer);

}  // namespace gear_reverb::client
