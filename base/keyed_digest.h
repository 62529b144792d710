// Proof that this user wrote some bytes: a digest keyed with a secret only this user can read.
//
// The disk cache puts it on native code, so that code planted by another account or copied from
// another machine is never executed. BLAKE2b of libsodium, 32 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace fornax {

inline constexpr const char* kUserSecretFileName = "fornax-secret";

struct UserSecret {
    std::array<std::byte, 32> bytes = {};
};

using KeyedDigest = std::array<std::byte, 32>;

// Reads <directory>/fornax-secret, or creates it from the system's random source with mode 0600;
// when several processes create it at once, all get the one that came first. A secret that others
// could have read or that has a wrong size is replaced, which invalidates what it signed; one that
// another user owns is an error.
Result<UserSecret> LoadOrCreateUserSecret(const std::string& directory);

// The digest of the parts, one after the other.
KeyedDigest ComputeKeyedDigest(const UserSecret& secret,
                               std::span<const std::span<const std::byte>> parts);

// Compares in constant time.
bool SameDigest(const KeyedDigest& a, const KeyedDigest& b);

}  // namespace fornax
