// SHA-256 and HMAC-SHA256 against the vectors of FIPS 180-4 and RFC 4231.
#include "pipeline/store/digest256.h"

#include <gtest/gtest.h>

#include <vector>

namespace stoker {
namespace {

TEST(Digest256, IsThatOfFips180) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Digest256, HmacIsThatOfRfc4231) {
  const std::vector<uint8_t> short_key(20, 0x0b), long_key(131, 0xaa);
  EXPECT_EQ(to_hex(hmac_sha256(short_key, bytes_of("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(long_key,
                               bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// The digest of nothing with no key: the same as with a key of zeros.
TEST(Digest256, HmacTakesAnEmptyKey) {
  const std::vector<uint8_t> zeros(64, 0);
  EXPECT_EQ(hmac_sha256({}, bytes_of("text")), hmac_sha256(zeros, bytes_of("text")));
  EXPECT_EQ(hmac_sha256({}, {}), hmac_sha256(zeros, {}));
}

}  // namespace
}  // namespace stoker
