"""Makes the files of this folder with the programs that people write such files with: numpy, pyarrow, safetensors, Pillow."""
import io, json, struct
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from PIL import Image, PngImagePlugin

a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
b = a.copy(); b[1, 2] = 6.003

np.save("a.npy", a); np.save("b.npy", b); np.save("shape.npy", a.reshape(3, 2)); np.save("kind.npy", a.astype("f4"))
np.save("half-a.npy", a.astype(">f2")); np.save("half-b.npy", b.astype(">f2") + np.float16(0.5))
np.save("columns-a.npy", np.asfortranarray(a)); np.save("columns-b.npy", np.asfortranarray(b))
np.save("complex-a.npy", a.astype("c16")); np.save("complex-b.npy", b.astype("c16"))


def tensors(name, array, order):
    head, data = {}, b""
    for key in order:
        part = (array if key == "weight" else array[0]).astype("<f4").tobytes()
        shape = [2, 3] if key == "weight" else [3]
        head[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)


tensors("a.safetensors", a, ["weight", "bias"]); tensors("b.safetensors", b, ["weight", "bias"])
tensors("order.safetensors", a, ["bias", "weight"])


def table(loss, name="ada"):
    return pa.table({"step": pa.array([1, 2, 3], pa.int64()), "loss": pa.array(loss, pa.float64()),
                     "who": pa.array([name, None, "bob"]), "top": pa.array([[0.5, 0.25], [], [1.0]], pa.list_(pa.float32()))})


pq.write_table(table([0.5, 0.25, float("nan")]), "a.parquet")
pq.write_table(table([0.5, 0.25, float("nan")]), "gzip.parquet", compression="gzip", row_group_size=2, use_dictionary=False)
pq.write_table(table([0.5, 0.2501, float("nan")]), "b.parquet", compression="none")
pq.write_table(table([0.5, 0.25, float("nan")], "eve"), "words.parquet")
pq.write_table(table([0.5, 0.25, float("nan")]), "zstd.parquet", compression="zstd")

pixels = (np.arange(48).reshape(4, 4, 3) * 5).astype("u1")
near = pixels.copy(); near[3, 3, 0] += 1
Image.fromarray(pixels).save("a.png")
said = PngImagePlugin.PngInfo(); said.add_text("Software", "another version")
Image.fromarray(pixels).save("said.png", pnginfo=said, compress_level=0)
Image.fromarray(near).save("b.png")
Image.fromarray(pixels[:2]).save("small.png")
Image.fromarray(pixels).quantize(48).save("palette.png")
deep = (np.arange(16).reshape(4, 4) * 4000).astype("u2")
Image.fromarray(deep).save("deep-a.png"); Image.fromarray(deep + np.uint16(1)).save("deep-b.png")
Image.fromarray(np.kron(pixels, np.ones((8, 8, 1), "u1"))).save("a.jpg", quality=90)
far = pixels.copy(); far[3, 3] -= 40
Image.fromarray(np.kron(far, np.ones((8, 8, 1), "u1"))).save("b.jpg", quality=90)
Image.fromarray(np.kron(pixels, np.ones((8, 8, 1), "u1"))).save("said.jpg", quality=90, comment=b"made later")
