// What this process is to others, and which boot of the machine it runs in, as the kernel tells.
//
// A container may have a boot id of its own, mounted over the kernel's, none at all, and a clock of its own (a time
// namespace). A value that is not the machine's counts as unknown: see events/boot.hpp. The same rules are in
// src/queueduct/segments/boot.py, and a test compares the two.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "events/boot.hpp"
#include "segment/participants.hpp"

namespace queueduct::facade {

inline constexpr const char* boot_id_path = "/proc/sys/kernel/random/boot_id";

[[nodiscard]] inline std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns false, and zeros, if the id cannot be read.
inline bool read_boot_id(std::uint64_t (&id)[2]) {
  unsigned char bytes[16] = {};
  std::size_t digits = 0;
  for (const char c : content_of(boot_id_path)) {
    if (c == '-' || c == '\n') continue;
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0 || digits == 32) return false;
    bytes[digits / 2] = static_cast<unsigned char>(bytes[digits / 2] << 4 | value);
    ++digits;
  }
  if (digits != 32) return false;
  std::memcpy(id, bytes, sizeof bytes);
  return true;
}

// When this process started, in ticks since boot; 0 if unknown.
[[nodiscard]] inline std::uint64_t start_ticks() {
  const std::string stat = content_of("/proc/self/stat");
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == stat.npos) return 0;
  std::istringstream fields(stat.substr(end_of_name + 1));
  std::string field;
  for (int i = 0; i < 20; ++i)
    if (!(fields >> field)) return 0;
  return std::strtoull(field.c_str(), nullptr, 10);
}

[[nodiscard]] inline Identity own_identity() {
  Identity identity;
  (void)read_boot_id(identity.boot_id);
  identity.start_ticks = start_ticks();
  return identity;
}

// Returns true if the path leads to proc's own file: the last mount at it, or above it, decides.
[[nodiscard]] inline bool is_kernels_own(const std::string& path, const std::string& mounts) {
  std::string root, point, kind, line;
  for (std::istringstream lines(mounts); std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) return false;
    std::istringstream fields(line.substr(0, dash)), rest(line.substr(dash + 3));
    std::string id, parent, device, this_root, this_point, this_kind;
    if (!(fields >> id >> parent >> device >> this_root >> this_point) || !(rest >> this_kind)) return false;
    const std::string below = this_point == "/" ? "/" : this_point + "/";
    if ((this_point == path || path.starts_with(below)) && this_point.size() >= point.size())
      root = this_root, point = this_point, kind = this_kind;
  }
  const std::string prefix = point == "/" ? "" : point;
  return kind == "proc" && (root == "/" ? "" : root) + path.substr(prefix.size()) == "/sys/kernel/random/boot_id";
}

[[nodiscard]] inline std::string link_of(const char* path) {
  char target[64];
  const ssize_t length = readlink(path, target, sizeof target);
  return length < 0 ? "" : std::string(target, static_cast<std::size_t>(length));
}

// Sets what a time namespace adds to CLOCK_BOOTTIME. Returns false if it is unknown.
inline bool read_clock_offset(std::int64_t& offset_ns) {
  offset_ns = 0;
  if (access("/proc/self/ns/time", F_OK) != 0) return access("/proc/self/ns/pid", F_OK) == 0;
  const std::string own = link_of("/proc/self/ns/time");
  if (own.empty() || own != link_of("/proc/self/ns/time_for_children")) return false;
  std::istringstream lines(content_of("/proc/self/timens_offsets"));
  std::string clock;
  for (std::int64_t seconds, nanoseconds; lines >> clock >> seconds >> nanoseconds;)
    if (clock == "boottime" || clock == "7") {
      offset_ns = seconds * 1'000'000'000 + nanoseconds;
      return true;
    }
  return false;
}

// A queue in memory needs none: it cannot outlive the boot.
[[nodiscard]] inline BootWitnesses boot_witnesses(bool is_on_disk) {
  BootWitnesses found;
  if (!is_on_disk) return found;
  found.is_on_disk = true;
  if (is_kernels_own(boot_id_path, content_of("/proc/self/mountinfo"))) (void)read_boot_id(found.boot_id);
  found.has_clock = read_clock_offset(found.clock_offset_ns);
  return found;
}

}  // namespace queueduct::facade
