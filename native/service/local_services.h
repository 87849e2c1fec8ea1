// The services of this process, by token.
#pragma once

#include <memory>
#include <string>

namespace gear_reverb::service {

class ReplayService;

void RegisterLocalService(const std::shared_ptr<ReplayService>& service);
void UnregisterLocalService(const std::string& token);

}  // namespace gear_reverb::service
