// Packed texts from bytes: each is unpacked in whole, in part, or refused. The first byte chooses how much is asked
// for.
#include "data/text_file.h"

#include "data/sources.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const size_t most[] = {1, 100, 1 << 16, 1 << 20};
    text_file whole, part;
    err e = {0};
    if (!size) return 0;
    size_t want = most[data[0] & 3];
    if (!text_file_unpack(&whole, "fuzz", data + 1, size - 1, 1 << 22, &e)) {
        CHECK(e.kind == ERR_INPUT && e.text[0], "an error of kind %d", e.kind);
        CHECK(!whole.owned && !whole.data, "a text is left behind an error");
        return 0;
    }
    CHECK(whole.data && (!whole.owned || whole.size <= 1 << 22), "%zu bytes", whole.size);
    source_kind_in(whole.data, whole.size);
    // A text cut short begins as the whole does.
    CHECK(text_file_unpack(&part, "fuzz", data + 1, size - 1, want, &e), "a part is refused: %s", e.text);
    CHECK(part.arrays == whole.arrays && part.size <= whole.size, "a part has %zu bytes", part.size);
    CHECK(!memcmp(part.data, whole.data, part.size), "a part differs");
    text_file_close(&part);
    text_file_close(&whole);
    return 0;
}
