// Array headers: any bytes are parsed or refused, and what is parsed holds its promises.
#include "data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    npy_header h;
    err e;
    arena a;
    arena_init(&a);
    if (npy_parse(&h, &a, data, (int64_t)size, "fuzz", &e)) {
        CHECK(h.rank <= NPY_RANK_MOST && h.head <= (int64_t)size && h.count >= 0, "a header out of bounds");
        CHECK(h.bytes == (h.item < 0 ? -1 : h.count * h.item), "a size that is not its product");
        for (int i = 0; i < h.fields; i++)
            CHECK(
                h.field[i].offset >= 0 && h.field[i].offset + h.field[i].item <= h.item, "a field outside its record");
        if (npy_type_bytes(h.type)) CHECK(npy_type_bytes(h.type) == h.item, "a type of two sizes");
    }
    arena_done(&a);
    return 0;
}
