// Types of slipway.mjs.

export type DType =
  | "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64"
  | "float16" | "bfloat16" | "float32" | "float64" | "bool";
export type TypedArray =
  | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint8ClampedArray
  | Uint16Array | Uint32Array | BigUint64Array | Float32Array | Float64Array;
export type Numbers = number | bigint | boolean | TypedArray | ReadonlyArray<Numbers>;
export type Shape = number | ReadonlyArray<number | bigint> | TypedArray;
/** Elements that were copied out, with what they are. */
export type HostArray = TypedArray & { shape: number[]; dtype: DType };
export type Bytes = ArrayBufferLike | ArrayBufferView;
// What the page's or node's own types call so: programs for node have no `lib.dom`.
type Known<Name extends string> = typeof globalThis extends Record<Name, { prototype: infer T }> ? T : never;
type OfWasm<Name extends string, Else> =
  typeof globalThis extends { WebAssembly: Record<Name, { prototype: infer T }> } ? T : Else;
export type WasmModule = OfWasm<"Module", object>;
export type WasmMemory = OfWasm<"Memory", { readonly buffer: ArrayBufferLike }>;
type Given = string | Known<"URL"> | Bytes | Known<"Blob"> | Known<"Response">;
export type Source = Given | WasmModule | PromiseLike<Given | WasmModule>;

export interface LoadOptions {
  /** Told of bytes as they come; `total` is undefined where the server does not say. */
  onProgress?: (loaded: number, total: number | undefined, file: "model" | "params") => void;
  /** The parameters of a model that was written without them. */
  params?: Given | PromiseLike<Given>;
  /** The name of a browser's cache to keep the files in. */
  cache?: string;
  /** How many threads; all where the module and the page allow it, else one, if left out. */
  threads?: number;
}

export interface TensorInfo {
  name: string;
  dtype: DType;
  /** Its sizes, the largest ones where dimensions are open. */
  shape: number[];
  /** The same with open dimensions as the model names them: `["n", 3]`. */
  axes: (number | string)[];
}

export interface OpenSize {
  name: string;
  low: number;
  high: number;
}

export class SlipwayError extends Error {
  constructor(message: string, kind?: string, options?: ErrorOptions);
}

export class Device {
  readonly deviceType: number;
  readonly deviceId: number;
  constructor(type: string | number, index?: number);
  toString(): string;
}

export class Scalar {
  value: number | bigint;
  dtype: DType;
  constructor(value: number | bigint, dtype: DType);
}

export interface Disposable {
  dispose(): void;
}

export class Tensor implements Disposable {
  readonly shape: number[];
  readonly dtype: DType;
  readonly size: number;
  readonly ndim: number;
  readonly device: Device;
  readonly data: TypedArray;
  copyFrom(source: Numbers | Tensor): this;
  toArray(): HostArray;
  raw(): Uint8Array;
  toRawBytes(): Uint8Array;
  copyFromRawBytes(source: Bytes): this;
  dispose(): void;
}
export { Tensor as NDArray };

export type Value =
  | undefined | null | number | bigint | boolean | string | Uint8Array
  | Scalar | Device | Tensor | Module | PackedFunc | ((...args: any[]) => unknown);

export interface PackedFunc extends Disposable {
  (...args: Value[]): any;
}

export class Module implements Disposable {
  getFunction(name: string): PackedFunc;
  dispose(): void;
}

export class Runtime {
  readonly memory: WasmMemory;
  readonly metadata: Record<string, any>;
  readonly numThreads: number;
  stopThreads(): void;
  sha256(bytes: Uint8Array): string;
  systemLib(): Module;
  cpu(index?: number): Device;
  device(type: string, index?: number): Device;
  scalar(value: number | bigint, dtype: DType): Scalar;
  listFunctionNames(): string[];
  empty(shape: Shape, dtype?: DType, device?: Device): Tensor;
  tensor(values: Numbers, shape?: Shape, dtype?: DType): Tensor;
  registerFunc(name: string, func: (...args: any[]) => unknown, override?: boolean): void;
  getGlobalFunc(name: string): PackedFunc;
  removeGlobalFunc(name: string): void;
  listGlobalFuncNames(): string[];
  isPackedFunc(value: unknown): value is PackedFunc;
  toPackedFunc(func: (...args: any[]) => unknown): PackedFunc;
  beginScope(): void;
  endScope(): void;
  withNewScope<T>(action: () => T): T;
  attachToCurrentScope<T extends Disposable>(owned: T): T;
  detachFromCurrentScope<T extends Disposable>(owned: T): T;
  moveToParentScope<T extends Disposable>(owned: T): T;
}

export class Model implements Disposable {
  readonly runtime: Runtime;
  readonly module: Module;
  readonly inputs: TensorInfo[];
  readonly outputs: TensorInfo[];
  /** What lives from run to run; see `reset`, `saveState`. */
  readonly states: TensorInfo[];
  readonly openSizes: OpenSize[];
  run(inputs?: Record<string, Numbers | Tensor>): Promise<Record<string, HostArray>>;
  runSync(inputs?: Record<string, Numbers | Tensor>): Record<string, HostArray>;
  setInput(name: string, value: Numbers | Tensor): void;
  getOutput(index: number): HostArray;
  reset(): void;
  saveState(): Record<string, HostArray>;
  loadState(saved: Record<string, Numbers>): void;
  getFunction(name: string): PackedFunc;
  loadParams(bytes: Bytes): number;
  profile(repeat?: number): { layer: string; function: string; ms: number }[];
  dispose(): void;
}

/** Whether this engine has what a target may ask for. */
export function hasFeature(name: "simd128" | "relaxed-simd" | "atomics"): boolean;
/** What belongs to the first features, with + between them, that this engine has all of; "" is none. */
export function byFeature<T>(choices: Record<string, T>): T;

/** Load a model. */
export function load(source: Source, options?: LoadOptions): Promise<Model>;
/** Load functions at once; for workers, and for small modules. */
export function instantiateSync(source: Bytes | WasmModule): Runtime;
/** Load functions; the classic entry. */
export function instantiate(source: Source, options?: LoadOptions): Promise<Runtime>;
