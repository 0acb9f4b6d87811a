// The directory and the names of queues: the rules are those of src/queueduct/segments/names.py.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "cpp/errors.hpp"

namespace queueduct {

// How a queue is found.
struct Options {
  std::filesystem::path directory = {};  // where its file is; by default $QUEUEDUCT_DIR, or /dev/shm/queueduct-<uid>
};

namespace facade {

inline constexpr std::size_t name_limit_bytes = 255;

inline void check_name(const std::string& name) {
  const auto refuse = [&](const std::string& rule) {
    throw std::invalid_argument("a queue's name must " + rule + ": name=" + quoted(name.substr(0, 40)));
  };
  if (name.empty()) refuse("not be empty");
  if (name.size() > name_limit_bytes) refuse("be at most " + std::to_string(name_limit_bytes) + " bytes long");
  if (name.find('/') != name.npos || name.find('\0') != name.npos) refuse("not contain '/' or NUL");
  if (name.starts_with('.')) refuse("not start with a dot");
}

// The default directory must belong to this user alone. Nothing is made here: Python creates queues.
[[nodiscard]] inline std::filesystem::path directory_of(const Options& options) {
  if (!options.directory.empty()) return std::filesystem::absolute(options.directory);
  if (const char* chosen = std::getenv("QUEUEDUCT_DIR"); chosen != nullptr && *chosen != '\0')
    return std::filesystem::absolute(chosen);
  const std::filesystem::path path = "/dev/shm/queueduct-" + std::to_string(geteuid());
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return path;  // the open says that there is no such queue
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    throw Error(path.string() + " must be a directory of this user alone: owner=" + std::to_string(status.st_uid) +
                "; remove it, or set QUEUEDUCT_DIR to another directory");
  return path;
}

}  // namespace facade
}  // namespace queueduct
